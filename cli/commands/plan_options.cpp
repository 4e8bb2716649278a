#include "commands/plan_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "pipewright/plan/error.hpp"

namespace pipewright::cli {
namespace {

/// The three kinds of request, as bits.
enum Mode : unsigned { SearchesModel = 1, KeepsArguments = 2, SearchesScenario = 4 };
constexpr unsigned any_model = SearchesModel | KeepsArguments,
                   any_search = SearchesModel | SearchesScenario;

Mode mode_of(const PlanOptions& options) {
  return !options.scenario.file.empty() ? SearchesScenario
         : options.model.as_is          ? KeepsArguments
                                        : SearchesModel;
}

/// The modes that accept an option. Options without a row are accepted in every mode.
struct ModeOption {
  std::string_view option;
  unsigned modes;
  const char* otherwise = nullptr;  // why it is rejected; null: as the mode rejects all others
};

constexpr ModeOption mode_options[] = {
    {"--model", any_model, "a scenario already has a model: give one of them"},
    {"--as-is", any_model, "only valid with --model"},
    {"--batch", SearchesModel},
    {"--sequence", any_model},
    {"--precision", SearchesModel},
    {"--attention", SearchesModel},
    {"--overlap", SearchesModel},
    {"--pareto", SearchesModel},
    {"--svg", SearchesModel},
    {"--exhaustive", SearchesModel},
    {"--regret", SearchesModel},
    {"--explain", SearchesModel},
    {"--failure-hours", SearchesModel},
    {"--write-rate", SearchesModel},
    {"--restart-minutes", SearchesModel},
    {"--tensor", any_search},
    {"--pipeline", any_search},
    {"--context", any_search},
    {"--expert", any_search},
    {"--schedule", any_search},
    {"--partition", any_search},
    {"--chunks", any_search},
    {"--microbatch", any_search},
    {"--zero", any_search},
    {"--recompute", any_search},
    {"--sequence-parallel", any_search},
    {"--at", any_search},
    {"--out", any_search},
    {"--set", SearchesScenario},
    {"--costs", SearchesScenario},
    {"--replan", SearchesScenario},
    {"--lost", SearchesScenario},
    {"--slow", SearchesScenario},
    {"--checkpoints", SearchesScenario},
    {"--step", SearchesScenario}};

const char* refusal_of(Mode mode) {
  switch (mode) {
    case SearchesModel:
      return "only valid for a scenario file: give one instead of --model";
    case KeepsArguments:
      return "only valid for a search, but --as-is keeps the plan of the arguments";
    case SearchesScenario:
      return "only valid with --model; a scenario has its own value, which --set changes";
  }
  return "";
}

/// An option that a mode requires.
struct RequiredOption {
  std::string_view option;
  unsigned modes;
  const char* message;
};
constexpr RequiredOption required_options[] = {
    {"--model", any_model, "nothing to plan: give a model (--model llama3-70b) or a scenario file"},
    {"--cluster", any_model,
     "--cluster: a model needs a cluster, such as scenarios/clusters/h100-sxm.json"},
    {"--batch", SearchesModel, "--batch: a model needs the number of samples per iteration"}};

/// A rule that an option requires or excludes another.
enum class Beside { Needed, Excluded };
struct OptionPair {
  std::string_view option;
  Beside beside;
  std::string_view other;
  const char* message;
};
constexpr OptionPair option_pairs[] = {
    {"--svg", Beside::Needed, "--pareto", "--svg: draws the Pareto front: it needs --pareto"},
    {"--write-rate", Beside::Needed, "--failure-hours",
     "--write-rate: only valid with --failure-hours"},
    {"--restart-minutes", Beside::Needed, "--failure-hours",
     "--restart-minutes: only valid with --failure-hours"},
    {"--failure-hours", Beside::Needed, "--write-rate",
     "--failure-hours needs --write-rate: GB/s at which checkpoints are written"},
    {"--jitter", Beside::Needed, "--at", "--jitter: only valid with --at"},
    {"--draws", Beside::Needed, "--at", "--draws: only valid with --at"},
    {"--seed", Beside::Needed, "--at", "--seed: only valid with --at"},
    {"--at", Beside::Excluded, "--pareto", "--at: cannot be combined with --pareto"},
    {"--at", Beside::Needed, "--jitter",
     "--at: needs recorded steps to sample from: --jitter FILE, a table or the folder of a run"},
    {"--lost", Beside::Needed, "--replan", "--lost: only valid with --replan"},
    {"--slow", Beside::Needed, "--replan", "--slow: only valid with --replan"},
    {"--checkpoints", Beside::Needed, "--replan", "--checkpoints: only valid with --replan"},
    {"--step", Beside::Needed, "--replan", "--step: only valid with --replan"}};

void require_planned_zero(const std::vector<int>& stages) {
  for (const int stage : stages)
    if (stage > 3)
      throw plan::InputError(fmt::format("--zero {}: ZeRO has the stages 0 to 3", stage));
}

/// Rejects overlaps that a scenario cannot express, because the written plan would take longer than
/// predicted.
void require_planned_overlap(const std::vector<std::string>& overlaps) {
  for (const std::string& overlap : overlaps)
    if (overlap != "none" && overlap != "gradients")
      throw plan::InputError(fmt::format(
          "--overlap {}: a planned scenario waits for {}; only --as-is predicts a run with this "
          "overlap",
          overlap,
          overlap == "parameters" ? "parameters that are all-gathered after the step"
          : overlap == "sums"     ? "tensor-parallel all-reduces"
                                  : "all-gathered parameters and tensor-parallel all-reduces"));
}

}  // namespace

search::SearchAxes axes_of(const AxisOptions& options) {
  search::SearchAxes axes{.tensor = options.tensor,
                          .pipeline = options.pipeline,
                          .context = options.context,
                          .expert = options.expert,
                          .chunks = options.chunks,
                          .microbatch = options.microbatch,
                          .zero = options.zero,
                          .schedules = options.schedules};
  for (const std::string& word : options.recompute)
    axes.recompute.push_back(plan::recompute_mode(word));
  for (const std::string& word : options.partition)
    axes.stage_sizes.push_back(word == "equal" ? search::StageSizes::Equal
                                               : search::StageSizes::Balanced);
  if (options.sequence_parallel == "both")
    axes.sequence_parallel = {false, true};
  else if (!options.sequence_parallel.empty())
    axes.sequence_parallel = {options.sequence_parallel == "yes"};
  return axes;
}

void require_fitting(const PlanOptions& options, const std::vector<std::string>& given) {
  const Mode mode = mode_of(options);
  const auto is_given = [&](std::string_view option) {
    return std::ranges::find(given, option) != given.end();
  };
  require_planned_zero(options.search.axes.zero);
  require_planned_overlap(options.model.overlap);
  for (const RequiredOption& row : required_options)
    if ((row.modes & mode) != 0 && !is_given(row.option))
      throw plan::InputError(row.message);
  for (const ModeOption& row : mode_options)
    if ((row.modes & mode) == 0 && is_given(row.option))
      throw plan::InputError(fmt::format(
          "{}: {}", row.option, row.otherwise == nullptr ? refusal_of(mode) : row.otherwise));
  for (const OptionPair& row : option_pairs)
    if (is_given(row.option) && is_given(row.other) != (row.beside == Beside::Needed))
      throw plan::InputError(row.message);
}

std::string progress_words(std::size_t decided, std::size_t candidates, const std::string& best) {
  return fmt::format("planning: {} of {} candidates{}{}", decided, candidates,
                     best.empty() ? "" : ", best so far ", best);
}

}  // namespace pipewright::cli
