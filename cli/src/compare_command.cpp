#include "commands.hpp"
#include "console.hpp"
#include "pipewright/plan/comparison.hpp"
#include "pipewright/plan/kind_comparison.hpp"

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

}  // namespace

Action add_compare(CLI::App& program) {
  auto* const command = program.add_subcommand(
      "compare", "Errors of a prediction: overall, by rank, by kind of action");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("predicted", options->predicted, "A timeline's trace file")->required();
  command->add_option("measured", options->measured, "A timeline's trace file")->required();
  command->add_flag("--json", options->json, "Print one JSON document");
  command->footer(
      "Example: pipewright compare runs/x/predicted.trace.json runs/x/measured.trace.json");
  return [options] { return compare(*options); };
}

}  // namespace pipewright::cli
