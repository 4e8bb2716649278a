#include "commands/plan_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::cli {
namespace {

using Options = PlanOptions;
using Holds = bool (*)(const Options&);

// What is asked for.
constexpr Holds of_model = [](const Options& o) { return o.scenario.empty(); };
constexpr Holds of_scenario = [](const Options& o) { return !o.scenario.empty(); };
constexpr Holds goes_on = [](const Options& o) { return o.replan; };
constexpr Holds of_failures = [](const Options& o) { return o.failure_hours > 0; };
constexpr Holds at_percentile = [](const Options& o) { return !o.at.empty(); };
constexpr Holds searches = [](const Options& o) { return !o.as_is; };
constexpr Holds of_front = [](const Options& o) { return o.pareto; };

/// An option that is for one kind of question alone.
struct Belongs {
  const char* option;
  Holds is_given;
  Holds belongs_to;
  const char* otherwise;  // behind the option: why it is refused
};

constexpr const char* for_model = "is for --model; a scenario has its own";
constexpr const char* for_scenario = "is for a scenario's file, which trains here";
constexpr const char* for_replan = "is for --replan";
constexpr const char* for_at = "is for --at";
constexpr const char* for_search = "is for a search; --as-is keeps what the arguments say";

constexpr Belongs belongings[] = {
    {"--model", [](const Options& o) { return !o.model.empty(); }, of_model,
     "a scenario has a model already: give one of them"},
    {"--batch", [](const Options& o) { return o.batch != 0; }, of_model, for_model},
    {"--sequence", [](const Options& o) { return o.sequence.has_value(); }, of_model, for_model},
    {"--tensor", [](const Options& o) { return !o.tensor.empty(); }, of_model,
     "a scenario is trained without tensor parallelism"},
    {"--context", [](const Options& o) { return !o.context.empty(); }, of_model,
     "a scenario is trained without context groups"},
    {"--expert", [](const Options& o) { return !o.expert.empty(); }, of_model,
     "a scenario's models have no experts"},
    {"--precision", [](const Options& o) { return !o.precision.empty(); }, of_model, for_model},
    {"--attention", [](const Options& o) { return !o.attention.empty(); }, of_model, for_model},
    {"--sequence-parallel", [](const Options& o) { return !o.sequence_parallel.empty(); }, of_model,
     for_model},
    {"--overlap", [](const Options& o) { return !o.overlap.empty(); }, of_model, for_model},
    {"--partition", [](const Options& o) { return !o.partition.empty(); }, of_model,
     "is for --model; a scenario's borders are moved until no move helps"},
    {"--regret", [](const Options& o) { return o.regret > 0; }, of_model,
     "is for --model: measured costs have no constants"},
    {"--explain", [](const Options& o) { return o.explain > 0; }, of_model,
     "is for --model; `pipewright simulate` tells all of a scenario's plan"},
    {"--failure-hours", [](const Options& o) { return o.failure_hours > 0; }, of_model,
     "is for --model"},
    {"--write-rate", [](const Options& o) { return o.write_rate > 0; }, of_failures,
     "is for --failure-hours"},
    {"--pareto", [](const Options& o) { return o.pareto; }, of_model, "is for --model"},
    {"--exhaustive", [](const Options& o) { return o.exhaustive; }, of_model, "is for --model"},
    {"--svg", [](const Options& o) { return !o.svg.empty(); }, of_model,
     "is for --model with --pareto"},
    {"--svg", [](const Options& o) { return !o.svg.empty(); }, of_front,
     "draws time over memory, for which it needs --pareto"},
    {"--jitter", [](const Options& o) { return !o.jitter.empty(); }, at_percentile, for_at},
    {"--draws", [](const Options& o) { return o.draws.has_value(); }, at_percentile, for_at},
    {"--seed", [](const Options& o) { return o.seed.has_value(); }, at_percentile, for_at},
    {"--at", [](const Options& o) { return !o.at.empty(); },
     [](const Options& o) { return !o.pareto; },
     "chooses by one time; --pareto shows all times over memory"},
    {"--set", [](const Options& o) { return !o.assignments.empty(); }, of_scenario, for_scenario},
    {"--costs", [](const Options& o) { return !o.costs.empty(); }, of_scenario, for_scenario},
    {"--replan", [](const Options& o) { return o.replan; }, of_scenario, for_scenario},
    {"--lost", [](const Options& o) { return !o.lost.empty(); }, goes_on, for_replan},
    {"--slow", [](const Options& o) { return !o.slow.empty(); }, goes_on, for_replan},
    {"--checkpoints", [](const Options& o) { return !o.checkpoints.empty(); }, goes_on, for_replan},
    {"--step", [](const Options& o) { return o.step.has_value(); }, goes_on, for_replan},
    {"--as-is", [](const Options& o) { return o.as_is; }, of_model, "is for --model"},
    {"--batch", [](const Options& o) { return o.batch != 0; }, searches, for_search},
    {"--sequence", [](const Options& o) { return o.sequence.has_value(); }, searches, for_search},
    {"--tensor", [](const Options& o) { return !o.tensor.empty(); }, searches, for_search},
    {"--pipeline", [](const Options& o) { return !o.pipeline.empty(); }, searches, for_search},
    {"--context", [](const Options& o) { return !o.context.empty(); }, searches, for_search},
    {"--expert", [](const Options& o) { return !o.expert.empty(); }, searches, for_search},
    {"--schedule", [](const Options& o) { return !o.schedules.empty(); }, searches, for_search},
    {"--partition", [](const Options& o) { return !o.partition.empty(); }, searches, for_search},
    {"--chunks", [](const Options& o) { return !o.chunks.empty(); }, searches, for_search},
    {"--microbatch", [](const Options& o) { return !o.microbatch.empty(); }, searches, for_search},
    {"--zero", [](const Options& o) { return !o.zero.empty(); }, searches, for_search},
    {"--recompute", [](const Options& o) { return !o.recompute.empty(); }, searches, for_search},
    {"--precision", [](const Options& o) { return !o.precision.empty(); }, searches, for_search},
    {"--attention", [](const Options& o) { return !o.attention.empty(); }, searches, for_search},
    {"--sequence-parallel", [](const Options& o) { return !o.sequence_parallel.empty(); }, searches,
     for_search},
    {"--overlap", [](const Options& o) { return !o.overlap.empty(); }, searches, for_search},
    {"--pareto", of_front, searches, for_search},
    {"--exhaustive", [](const Options& o) { return o.exhaustive; }, searches, for_search},
    {"--regret", [](const Options& o) { return o.regret > 0; }, searches, for_search},
    {"--explain", [](const Options& o) { return o.explain > 0; }, searches,
     "is for a search; --as-is explains its one plan"},
    {"--failure-hours", of_failures, searches, for_search},
    {"--at", at_percentile, searches, for_search},
    {"--out", [](const Options& o) { return !o.out.empty(); }, searches, for_search}};

/// What a model cannot be planned without.
struct Needed {
  Holds is_given;
  const char* message;
};
constexpr Needed needed_of_model[] = {
    {[](const Options& o) { return !o.model.empty(); },
     "what is to be planned? Name a model (--model llama3-70b) or a scenario's file"},
    {[](const Options& o) { return !o.cluster.empty(); },
     "--cluster: a model needs a cluster, such as scenarios/clusters/h100-sxm.json"},
    {[](const Options& o) { return o.batch != 0 || o.as_is; },
     "--batch: a model needs the samples of an iteration"}};

void require_planned_zero(const std::vector<int>& stages) {
  for (const int stage : stages)
    if (stage > 3)
      throw plan::InputError(fmt::format("--zero {}: ZeRO has the stages 0 to 3", stage));
}

/// A scenario has no word for these, so that what a plan writes would take longer than it says.
void require_planned_overlap(const std::vector<std::string>& overlaps) {
  for (const std::string& overlap : overlaps)
    if (overlap != "none" && overlap != "gradients")
      throw plan::InputError(fmt::format(
          "--overlap {}: a planned scenario waits for {}; --as-is has the time of a run "
          "that does not",
          overlap,
          overlap == "parameters" ? "parameters that are gathered behind the step"
          : overlap == "sums"     ? "the sums of a layer's shards"
                                  : "gathered parameters and for sums of shards"));
}

}  // namespace

void require_fitting(const PlanOptions& options) {
  require_planned_zero(options.zero);
  require_planned_overlap(options.overlap);
  for (const Needed& needed : needed_of_model)
    if (of_model(options) && !needed.is_given(options))
      throw plan::InputError(needed.message);
  for (const Belongs& one : belongings)
    if (one.is_given(options) && !one.belongs_to(options))
      throw plan::InputError(fmt::format("{}: {}", one.option, one.otherwise));
  if (at_percentile(options) && options.jitter.empty())
    throw plan::InputError(
        "--at: there is nothing to draw from: --jitter names what was recorded of several steps, a "
        "table or the folder of a run");
  if (of_failures(options) && options.write_rate <= 0)
    throw plan::InputError(
        "--failure-hours needs --write-rate: GB/s at which checkpoints are written");
}

std::string progress_words(std::size_t decided, std::size_t candidates, const std::string& best) {
  return fmt::format("planning: {} of {} candidates{}{}", decided, candidates,
                     best.empty() ? "" : ", best so far ", best);
}

}  // namespace pipewright::cli
