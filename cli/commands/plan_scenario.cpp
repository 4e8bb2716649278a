#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/plan_at.hpp"
#include "commands/plan_options.hpp"
#include "commands/trainer_files.hpp"
#include "exit_code.hpp"
#include "options/scenario_options.hpp"
#include "pipewright/models/estimates/estimated_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/search/drafts/draft_files.hpp"
#include "pipewright/search/drafts/draft_search.hpp"
#include "pipewright/search/drafts/replan.hpp"
#include "print/console.hpp"
#include "print/drafts_table.hpp"
#include "process/interrupt.hpp"
#include "process/other_programs.hpp"

namespace pipewright::cli {
namespace {

/// Parses "2=0.8".
std::pair<int, double> slow_rank(const std::string& text) {
  const auto at = text.find('=');
  try {
    std::size_t rank_end = 0, speed_end = 0;
    const int rank = std::stoi(text, &rank_end);
    const double speed = std::stod(text.substr(at + 1), &speed_end);
    if (at != std::string::npos && rank_end == at && at + 1 + speed_end == text.size())
      return {rank, speed};
  } catch (const std::logic_error&) {
  }
  throw plan::InputError(
      fmt::format("--slow {}: write RANK=SPEED, such as 2=0.8 for a rank at 80 %", text));
}

search::DevicesLeft devices_of(const ReplanOptions& options, const plan::Scenario& scenario) {
  search::DeviceTrouble trouble{.lost = options.lost};
  for (const std::string& text : options.slow)
    trouble.slow.push_back(slow_rank(text));
  return devices_left(scenario, trouble);
}

search::DraftSpace space_of(const PlanOptions& options, const search::DevicesLeft& left,
                            const plan::Scenario& scenario) {
  const ReplanOptions& replan = options.scenario.replan;
  search::DraftSpace space{axes_of(options.search.axes), options.gpus};
  space.keeps_bits = replan.is_asked;
  if (options.gpus == 0) {
    space.devices = static_cast<int>(left.ranks.size());
    // Otherwise the kinds of nodes give the speeds.
    if (!replan.lost.empty() || !replan.slow.empty() || !scenario.cluster.rank_speeds.empty())
      space.speeds = left.speeds;
  }
  return space;
}

void write_plan(const std::filesystem::path& folder, const search::DraftPlan& plan) {
  std::filesystem::create_directories(folder);
  plan::write_file(folder / "scenario.json", search::scenario_text(plan.draft));
  plan::write_file(folder / "costs.json", to_json(search::costs_of(plan.draft)).dump(2) + "\n");
  const sim::ScenarioPlan laid = sim::lay_out(plan.draft.scenario, search::costs_of(plan.draft));
  plan::write_file(folder / "schedule.csv", search::schedule_csv(laid));
  write_trainer_files(folder, sim::placed(plan.draft.scenario, laid));
}

/// Returns the changes that continuing with the best plan requires.
Replan replan_of(const ReplanOptions& options, const search::Draft& before,
                 const search::DevicesLeft& left, const search::DraftPlan& best) {
  Replan replan{.moves = moves_to(before, best, left)};
  search::WhatIf what_if;
  if (const auto answer = what_if.answer(before); std::holds_alternative<search::Answer>(answer))
    replan.before_s = std::get<search::Answer>(answer).figures.iteration_s;
  if (!options.checkpoints.empty())
    replan.from = search::newest_step(options.checkpoints);
  const int from = replan.from ? replan.from->step : 0;
  if (options.step && *options.step < from)
    throw plan::InputError(
        fmt::format("--step {}: the newest checkpoint is from step {}", *options.step, from));
  if (options.step)
    replan.repeated_steps = *options.step - from;
  return replan;
}

/// Returns the draft. Costs that follow from sizes are estimated for each plan, because they differ
/// between cuts.
search::Draft asked_for(const PlanOptions& options) {
  const ScenarioPlanOptions& asked = options.scenario;
  search::Draft draft{.scenario = read_scenario({.file = asked.file,
                                                 .assignments = asked.assignments,
                                                 .data_path = "",
                                                 .cluster = options.cluster,
                                                 .schedule = ""})};
  catch_interrupts();
  if (asked.costs.empty() && models::has_analytic_costs(draft.scenario))
    say(models::estimate_note(draft.scenario));
  else
    draft.costs = costs_for(draft.scenario, asked.costs);
  return draft;
}

search::DraftAnswer searched(const PlanOptions& options, const search::Draft& draft,
                             const search::DevicesLeft& left, const std::optional<PlanAt>& at) {
  ProgressLine line;
  const auto show = [&](std::size_t decided, std::size_t candidates,
                        const search::DraftPlan* best) {
    line.show(progress_words(
        decided, candidates,
        best == nullptr ? ""
                        : fmt::format("{} with {}", plan::time_text(best->figures.iteration_s),
                                      search::words_of(*best))));
    return !interrupted();
  };
  search::DraftAnswer answer =
      search::search_drafts(draft, space_of(options, left, draft.scenario),
                            {.most_plans = plans_to_find(options.search, at), .progress = show});
  line.clear();
  if (at)
    choose_at(answer.plans, options.search.top, [&](const search::DraftPlan& plan) {
      return seconds_at(*at, plan.draft.scenario, search::costs_of(plan.draft));
    });
  return answer;
}

}  // namespace

int plan_scenario(const PlanOptions& options) {
  const search::Draft before = asked_for(options);
  const search::DevicesLeft left = devices_of(options.scenario.replan, before.scenario);
  const std::optional<PlanAt> at = plan_at(options.search.percentile);
  const search::DraftAnswer answer = searched(options, before, left, at);
  std::optional<Replan> replan;
  if (options.scenario.replan.is_asked && !answer.plans.empty())
    replan = replan_of(options.scenario.replan, before, left, answer.plans.front());
  if (!options.search.out.empty() && !answer.plans.empty())
    write_plan(options.search.out, answer.plans.front());
  if (options.json)
    fmt::print("{}\n", drafts_json(answer, replan, options.search.percentile.at).dump(2));
  else
    fmt::print("{}",
               drafts_table(answer, replan, options.search.out, options.search.percentile.at));
  if (answer.interrupted)
    return Interrupted;
  return answer.plans.empty() ? NegativeAnswer : Done;
}

}  // namespace pipewright::cli
