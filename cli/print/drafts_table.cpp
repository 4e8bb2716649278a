#include "print/drafts_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "pipewright/search/drafts/draft_files.hpp"

namespace pipewright::cli {
namespace {

double mb(plan::Bytes bytes) { return static_cast<double>(bytes.value) / 1e6; }

double bubble_of(const search::DraftPlan& plan) {
  return plan.figures.bubble_s / plan.figures.iteration_s;
}

plan::Json draft_json(const search::DraftPlan& plan, bool fits) {
  const plan::Scenario& scenario = plan.draft.scenario;
  return {{"ranks", scenario.pipeline.ranks},
          {"replicas", scenario.pipeline.replicas},
          {"microbatches", scenario.pipeline.microbatches},
          {"microbatch", scenario.training.microbatch_size},
          {"schedule", scenario.pipeline.schedule.label()},
          {"chunks", scenario.pipeline.chunks},
          {"recompute", to_string(scenario.training.recompute)},
          {"zero", scenario.training.zero},
          {"boundaries", plan.boundaries},
          {"iteration_s", plan.figures.iteration_s},
          {plan.figures.unit + "_per_s", plan.figures.units_per_s},
          {"bubble", bubble_of(plan)},
          {"peak_bytes", plan.figures.peak.value},
          {"fits", fits},
          {"scenario", plan::Json::parse(search::scenario_text(plan.draft))}};
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
    text += fmt::format("Plan 1 takes {:.3f} ms instead of {:.3f} ms ({:+.1f} %).\n",
                        1e3 * best.figures.iteration_s, 1e3 * replan.before_s,
                        100 * (best.figures.iteration_s / replan.before_s - 1));
  for (const search::RankMove& move : replan.moves)
    text += fmt::format(
        "rank {} (was {}) {}\n", move.rank, move.was,
        move.layers.empty()
            ? std::string("has all its layers")
            : fmt::format("reads {} it did not hold: {:.1f} MB",
                          move.layers.size() == 1
                              ? fmt::format("layer {}, which", move.layers.front())
                              : fmt::format("layers {}, which", fmt::join(move.layers, ", ")),
                          mb(move.bytes)));
  if (replan.from)
    text += fmt::format("It goes on from {} ({:.1f} MB)", replan.from->folder.string(),
                        mb(replan.from->bytes));
  else
    text += "There is no checkpoint: it begins with step 0";
  if (replan.repeated_steps)
    text += fmt::format("; {} steps run again, in {:.1f} s", *replan.repeated_steps,
                        *replan.repeated_steps * best.figures.iteration_s);
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
    text += fmt::format("{:>4}  {:>12}  {}{:>12}  {:>7}  {:>10}  {}\n", "plan", "iteration",
                        at_percentile.empty() ? "" : fmt::format("{:>12}  ", at_percentile),
                        answer.plans.front().figures.unit + "/s", "bubble", "memory", "cut");
  for (std::size_t at = 0; at < answer.plans.size(); ++at) {
    const search::DraftPlan& plan = answer.plans[at];
    text += fmt::format("{:>4}  {:>9.3f} ms  {}{:>12.0f}  {:>5.1f} %  {:>7.1f} MB  {}\n", at + 1,
                        1e3 * plan.figures.iteration_s,
                        at_percentile.empty() ? "" : fmt::format("{:>9.3f} ms  ", 1e3 * plan.at_s),
                        plan.figures.units_per_s, 100 * bubble_of(plan), mb(plan.figures.peak),
                        search::words_of(plan));
  }
  if (answer.nearest)
    text +=
        fmt::format("\n{} {}: {:.3f} ms, but a rank needs {:.1f} MB, and a device has {:.1f} MB\n",
                    answer.plans.empty() ? "No plan fits. The smallest is"
                                         : "The next faster one does not fit.",
                    search::words_of(*answer.nearest), 1e3 * answer.nearest->figures.iteration_s,
                    mb(answer.nearest->fullest.held), mb(answer.nearest->fullest.cap));
  if (replan)
    text += replan_words(*replan, answer.plans.front(), out);
  text += fmt::format(
      "\n{} candidates in {:.2f} s: {} impossible, {} too large, {} proved to be slower; {} plans "
      "simulated{}\n",
      answer.candidates, answer.seconds, answer.impossible, answer.too_large, answer.bounded,
      answer.simulated, answer.interrupted ? "; stopped before its end" : "");
  return text;
}

plan::Json drafts_json(const search::DraftAnswer& answer, const std::optional<Replan>& replan,
                       const std::string& at_percentile) {
  plan::Json plans = plan::Json::array();
  for (std::size_t at = 0; at < answer.plans.size(); ++at) {
    plan::Json plan = draft_json(answer.plans[at], true);
    if (!at_percentile.empty())
      plan[at_percentile + "_s"] = answer.plans[at].at_s;
    plan["change_to_next"] = at + 1 < answer.plans.size()
                                 ? search::changes_between(answer.plans[at].draft.scenario,
                                                           answer.plans[at + 1].draft.scenario)
                                 : "";
    plans.push_back(std::move(plan));
  }
  plan::Json json{{"format", "pipewright/plans/1"},
                  {"candidates", answer.candidates},
                  {"pruned", answer.impossible + answer.too_large + answer.bounded},
                  {"impossible", answer.impossible},
                  {"pruned_by_memory", answer.too_large},
                  {"pruned_by_bound", answer.bounded},
                  {"simulated", answer.simulated},
                  {"seconds", answer.seconds},
                  {"interrupted", answer.interrupted},
                  {"plans", std::move(plans)}};
  if (answer.nearest)
    json[answer.plans.empty() ? "smallest" : "too_large_but_faster"] =
        draft_json(*answer.nearest, false);
  if (replan)
    json["replan"] = replan_json(*replan, answer.plans.front());
  return json;
}

}  // namespace pipewright::cli
