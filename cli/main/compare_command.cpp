#include "commands.hpp"
#include "console.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/comparison.hpp"
#include "pipewright/plan/timeline/kind_comparison.hpp"
#include "pipewright/plan/timeline/trace.hpp"

namespace pipewright::cli {
namespace {

struct CompareOptions {
  std::string predicted;
  std::string measured;
  bool json = false;
};

plan::Timeline read_timeline(const std::string& file) {
  return plan::timeline_from_trace(plan::JsonDocument::read(file));
}

int compare(const CompareOptions& options) {
  const auto predicted = read_timeline(options.predicted);
  const auto measured = read_timeline(options.measured);
  if (predicted.ranks != measured.ranks)
    throw plan::InputError(fmt::format("{} has {} ranks, {} has {}: they are not of one plan",
                                       options.predicted, predicted.ranks, options.measured,
                                       measured.ranks));
  const auto expected = plan::figures_of(predicted), seen = plan::figures_of(measured);
  const auto expected_kinds = plan::time_per_kind(predicted);
  const auto seen_kinds = plan::time_per_kind(measured);
  if (options.json) {
    const plan::Json answer{{"predicted", to_json(expected)},
                            {"measured", to_json(seen)},
                            {"error_percent", plan::error_json(expected, seen)},
                            {"actions", plan::kinds_json(expected_kinds, seen_kinds)}};
    fmt::print("{}\n", answer.dump(2));
    return Done;
  }
  fmt::print("{}\n{}", plan::comparison_table(expected, seen),
             plan::kind_table(expected_kinds, seen_kinds));
  return Done;
}

Command describe(CompareOptions& options) {
  return {
      .name = "compare",
      .summary = "Errors of a prediction: overall, by rank, by kind of action",
      .options = {{.names = "predicted",
                   .target = &options.predicted,
                   .help = "A timeline's trace file",
                   .value = "FILE",
                   .required = true},
                  {.names = "measured",
                   .target = &options.measured,
                   .help = "A timeline's trace file",
                   .value = "FILE",
                   .required = true},
                  {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples =
          "Example: pipewright compare runs/x/predicted.trace.json "
          "runs/x/measured.trace.json"};
}

}  // namespace

Command compare_command() { return make_command(describe, compare); }

}  // namespace pipewright::cli
