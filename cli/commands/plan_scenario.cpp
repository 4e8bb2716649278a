#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/plan_options.hpp"
#include "exit_code.hpp"
#include "options/scenario_options.hpp"
#include "pipewright/loop/draft_files.hpp"
#include "pipewright/loop/draft_search.hpp"
#include "pipewright/loop/replan.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "print/console.hpp"
#include "print/drafts_table.hpp"
#include "process/interrupt.hpp"
#include "process/other_programs.hpp"

namespace pipewright::cli {
namespace {

void require_fitting(const PlanOptions& options) {
  const auto refuse_if = [](bool is_given, const char* option, const char* why) {
    if (is_given)
      throw plan::InputError(fmt::format("{}: {}", option, why));
  };
  const char* const with_model = "is for --model; a scenario has its own";
  refuse_if(!options.model.empty(), "--model", "a scenario has a model already: give one of them");
  refuse_if(options.batch != 0, "--batch", with_model);
  refuse_if(options.sequence.has_value(), "--sequence", with_model);
  refuse_if(!options.tensor.empty(), "--tensor",
            "a scenario is trained without tensor parallelism");
  refuse_if(!options.context.empty(), "--context", "a scenario is trained without context groups");
  refuse_if(!options.expert.empty(), "--expert", "a scenario's models have no experts");
  refuse_if(options.regret > 0, "--regret", "is for --model: measured costs have no constants");
  refuse_if(options.explain > 0, "--explain",
            "is for --model; `pipewright simulate` tells all of a scenario's plan");
  refuse_if(!options.svg.empty(), "--svg", "is for --model with --pareto");
  refuse_if(options.pareto, "--pareto", "is for --model");
  refuse_if(options.exhaustive, "--exhaustive", "is for --model");
  refuse_if(!options.partition.empty(), "--partition",
            "is for --model; a scenario's borders are moved until no move helps");
  if (!options.replan && tells_of_trouble(options))
    throw plan::InputError(trouble_without_replan);
}

plan::RecomputeMode recompute_mode(const std::string& word) {
  const auto& words = plan::recompute_modes();
  return static_cast<plan::RecomputeMode>(std::find(words.begin(), words.end(), word) -
                                          words.begin());
}

/// "2=0.8".
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

loop::DevicesLeft devices_of(const PlanOptions& options, const plan::Scenario& scenario) {
  loop::DeviceTrouble trouble{.lost = options.lost};
  for (const std::string& text : options.slow)
    trouble.slow.push_back(slow_rank(text));
  return devices_left(scenario, trouble);
}

loop::DraftSpace space_of(const PlanOptions& options, const loop::DevicesLeft& left) {
  loop::DraftSpace space{.devices = options.gpus,
                         .ranks = options.pipeline,
                         .schedules = options.schedules,
                         .chunks = options.chunks,
                         .microbatch = options.microbatch,
                         .zero = options.zero};
  for (const std::string& word : options.recompute)
    space.recompute.push_back(recompute_mode(word));
  if (options.gpus == 0) {
    space.devices = static_cast<int>(left.ranks.size());
    space.speeds = left.speeds;
  }
  space.keeps_bits = options.replan;
  return space;
}

void write_plan(const std::filesystem::path& folder, const loop::DraftPlan& plan) {
  std::filesystem::create_directories(folder);
  plan::write_file(folder / "scenario.json", loop::scenario_text(plan.draft));
  plan::write_file(folder / "costs.json", to_json(loop::costs_of(plan.draft)).dump(2) + "\n");
  plan::write_file(folder / "schedule.csv", loop::schedule_csv(sim::lay_out(
                                                plan.draft.scenario, loop::costs_of(plan.draft))));
}

/// What it takes to go on by the best plan.
Replan replan_of(const PlanOptions& options, const loop::Draft& before,
                 const loop::DevicesLeft& left, const loop::DraftPlan& best) {
  Replan replan{.moves = moves_to(before, best, left)};
  loop::WhatIf what_if;
  if (const auto answer = what_if.answer(before); std::holds_alternative<loop::Answer>(answer))
    replan.before_s = std::get<loop::Answer>(answer).figures.iteration_s;
  if (!options.checkpoints.empty())
    replan.from = loop::newest_step(options.checkpoints);
  const int from = replan.from ? replan.from->step : 0;
  if (options.step && *options.step < from)
    throw plan::InputError(
        fmt::format("--step {}: the newest checkpoint is of step {}", *options.step, from));
  if (options.step)
    replan.repeated_steps = *options.step - from;
  return replan;
}

}  // namespace

int plan_scenario(const PlanOptions& options) {
  require_fitting(options);
  const loop::Draft before = [&] {
    loop::Draft draft{.scenario = read_scenario({.file = options.scenario,
                                                 .assignments = options.assignments,
                                                 .data_path = "",
                                                 .cluster = options.cluster})};
    catch_interrupts();
    draft.costs = costs_for(draft.scenario, options.costs);
    return draft;
  }();
  const loop::DevicesLeft left = devices_of(options, before.scenario);
  ProgressLine line;
  const loop::DraftAnswer answer = loop::search_drafts(
      before, space_of(options, left),
      {.most_plans = options.top,
       .progress = [&](std::size_t done, std::size_t candidates, const loop::DraftPlan* best) {
         line.show(fmt::format("planning: {} of {} candidates{}", done, candidates,
                               best == nullptr ? ""
                                               : fmt::format(", best so far {:.3f} ms with {}",
                                                             1e3 * best->figures.iteration_s,
                                                             loop::words_of(*best))));
         return !interrupted();
       }});
  line.clear();
  std::optional<Replan> replan;
  if (options.replan && !answer.plans.empty())
    replan = replan_of(options, before, left, answer.plans.front());
  if (!options.out.empty() && !answer.plans.empty())
    write_plan(options.out, answer.plans.front());
  if (options.json)
    fmt::print("{}\n", drafts_json(before, answer, replan).dump(2));
  else
    fmt::print("{}", drafts_table(before, answer, replan, options.out));
  if (answer.interrupted)
    return Interrupted;
  return answer.plans.empty() ? NegativeAnswer : Done;
}

}  // namespace pipewright::cli
