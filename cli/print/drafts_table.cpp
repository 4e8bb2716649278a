#include "print/drafts_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "pipewright/plan/quantity_text.hpp"
#include "pipewright/search/drafts/draft_files.hpp"
#include "pipewright/search/planner/plan_words.hpp"
#include "print/search_answer.hpp"

namespace pipewright::cli {
namespace {

double bubble_of(const search::DraftPlan& plan) {
  return plan.figures.bubble_s / plan.figures.iteration_s;
}

plan::Json draft_json(const search::DraftPlan& plan, bool fits) {
  plan::Json json = cut_json(plan.draft.scenario, cut_of(plan));
  json.update({{"iteration_s", plan.figures.iteration_s},
               {plan.figures.unit + "_per_s", plan.figures.units_per_s},
               {"mfu", plan.mfu},
               {"bubble", bubble_of(plan)},
               {"memory_bytes", plan.figures.peak.value},
               {"memory_by_rank", memory_json(plan.memory)},
               {"fits", fits},
               {"scenario", plan::Json::parse(search::scenario_text(plan.draft))}});
  return json;
}

plan::Json replan_json(const Replan& replan, const search::DraftPlan& best) {
  plan::Json json{{"moves", plan::Json::array()}};
  for (const search::RankMove& move : replan.moves)
    json["moves"].push_back({{"rank", move.rank},
                             {"was", move.was},
                             {"layers", move.layers},
                             {"bytes", move.bytes.value}});
  if (replan.before_s > 0)
    json["iteration_before_s"] = replan.before_s;
  if (replan.from)
    json["checkpoint"] = {{"folder", replan.from->folder.string()},
                          {"step", replan.from->step},
                          {"bytes", replan.from->bytes.value}};
  if (replan.repeated_steps) {
    json["repeated_steps"] = *replan.repeated_steps;
    json["repeated_s"] = *replan.repeated_steps * best.figures.iteration_s;
  }
  return json;
}

std::string replan_words(const Replan& replan, const search::DraftPlan& best,
                         const std::string& out) {
  std::string text = "\n";
  if (replan.before_s > 0)
    text += fmt::format("Plan 1 takes {} instead of {} ({:+.1f} %).\n",
                        plan::time_text(best.figures.iteration_s), plan::time_text(replan.before_s),
                        100 * (best.figures.iteration_s / replan.before_s - 1));
  for (const search::RankMove& move : replan.moves)
    text += fmt::format(
        "rank {} (was {}) {}\n", move.rank, move.was,
        move.layers.empty()
            ? std::string("has all its layers")
            : fmt::format("reads {} it does not have: {}",
                          move.layers.size() == 1
                              ? fmt::format("layer {}, which", move.layers.front())
                              : fmt::format("layers {}, which", fmt::join(move.layers, ", ")),
                          plan::bytes_text(move.bytes)));
  if (replan.from)
    text += fmt::format("It continues from {} ({})", replan.from->folder.string(),
                        plan::bytes_text(replan.from->bytes));
  else
    text += "There is no checkpoint: it starts at step 0";
  if (replan.repeated_steps)
    text += fmt::format("; {} steps are repeated, in {}", *replan.repeated_steps,
                        plan::time_text(*replan.repeated_steps * best.figures.iteration_s));
  text += ".\n";
  if (!out.empty() && replan.from)
    text += fmt::format(
        "pipewright train {}/scenario.json --costs {}/costs.json --checkpoints {} "
        "--resume\n",
        out, out, replan.from->folder.parent_path().string());
  return text;
}

}  // namespace

std::string drafts_table(const search::DraftAnswer& answer, const std::optional<Replan>& replan,
                         const std::string& out, const std::string& at_percentile) {
  std::string text;
  if (!answer.plans.empty())
    text += fmt::format("{:>4}  {:>12}  {}{:>12}  {:>6}  {:>7}  {:>10}  {}\n", "plan", "iteration",
                        at_percentile.empty() ? "" : fmt::format("{:>12}  ", at_percentile),
                        answer.plans.front().figures.unit + "/s", "MFU", "bubble", "memory", "cut");
  for (std::size_t at = 0; at < answer.plans.size(); ++at) {
    const search::DraftPlan& plan = answer.plans[at];
    text += fmt::format(
        "{:>4}  {:>12}  {}{:>12.0f}  {:>6}  {:>5.1f} %  {:>10}  {}\n", at + 1,
        plan::time_text(plan.figures.iteration_s),
        at_percentile.empty() ? "" : fmt::format("{:>12}  ", plan::time_text(plan.at_s)),
        plan.figures.units_per_s, plan.mfu > 0 ? fmt::format("{:.1f} %", 100 * plan.mfu) : "-",
        100 * bubble_of(plan), plan::bytes_text(plan.figures.peak), search::words_of(plan));
  }
  if (answer.nearest)
    text += fmt::format("\n{} {}: {}, but a rank needs {}, and a device has {}\n",
                        answer.plans.empty() ? "No plan fits. The smallest is"
                                             : "The next faster one does not fit.",
                        search::words_of(*answer.nearest),
                        plan::time_text(answer.nearest->figures.iteration_s),
                        plan::bytes_text(answer.nearest->fullest.needed),
                        plan::bytes_text(answer.nearest->fullest.cap));
  if (replan)
    text += replan_words(*replan, answer.plans.front(), out);
  text += "\n" + account_words(answer, !answer.plans.empty());
  return text;
}

plan::Json drafts_json(const search::DraftAnswer& answer, const std::optional<Replan>& replan,
                       const std::string& at_percentile) {
  plan::Json plans = plan::Json::array();
  for (std::size_t at = 0; at < answer.plans.size(); ++at) {
    plan::Json plan = draft_json(answer.plans[at], true);
    if (!at_percentile.empty())
      plan[at_percentile + "_s"] = answer.plans[at].at_s;
    plan["change_to_next"] =
        at + 1 < answer.plans.size()
            ? search::changes_between(cut_of(answer.plans[at]), cut_of(answer.plans[at + 1]),
                                      answer.plans[at].boundaries.back())
            : "";
    plans.push_back(std::move(plan));
  }
  plan::Json json = account_json(answer);
  json["plans"] = std::move(plans);
  if (answer.nearest)
    json[answer.plans.empty() ? "smallest" : "too_large_but_faster"] =
        draft_json(*answer.nearest, false);
  if (replan)
    json["replan"] = replan_json(*replan, answer.plans.front());
  return json;
}

}  // namespace pipewright::cli
