#include "commands.hpp"
#include "console.hpp"
#include "pipewright/plan/comparison.hpp"

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

/// Mean length of the compute actions of each kind.
std::map<std::string, double> mean_by_kind(const plan::Timeline& timeline) {
  std::map<std::string, int> count;
  for (const plan::Span& span : timeline.spans)
    if (span.lane == plan::Lane::Compute)
      ++count[plan::kind_of(span.action)];
  std::map<std::string, double> mean;
  for (const auto& [kind, sum] : plan::busy_per_kind(timeline))
    mean[kind] = sum.value / count[kind];
  return mean;
}

plan::Json kinds_json(const plan::Timeline& predicted, const plan::Timeline& measured) {
  const auto expected = mean_by_kind(predicted), seen = mean_by_kind(measured);
  plan::Json kinds = plan::Json::object();
  for (const auto& [kind, mean] : expected)
    if (const auto found = seen.find(kind); found != seen.end())
      kinds[kind] = {{"predicted_s", mean},
                     {"measured_s", found->second},
                     {"error_percent", plan::error_percent(mean, found->second)}};
  return kinds;
}

int compare(const CompareOptions& options) {
  const auto predicted = read_timeline(options.predicted);
  const auto measured = read_timeline(options.measured);
  if (predicted.ranks != measured.ranks)
    throw plan::InputError(fmt::format("{} has {} ranks, {} has {}: they are not of one plan",
                                       options.predicted, predicted.ranks, options.measured,
                                       measured.ranks));
  const auto expected = plan::figures_of(predicted), seen = plan::figures_of(measured);
  const auto kinds = kinds_json(predicted, measured);
  if (options.json) {
    const plan::Json answer{{"predicted", to_json(expected)},
                            {"measured", to_json(seen)},
                            {"error_percent", plan::error_json(expected, seen)},
                            {"actions", kinds}};
    fmt::print("{}\n", answer.dump(2));
    return Done;
  }
  fmt::print("{}\n", plan::comparison_table(expected, seen));
  for (const auto& [kind, means] : kinds.items())
    fmt::print("mean {:<6} {:9.3f} ms predicted {:9.3f} ms measured {:+7.1f} %\n", kind,
               1e3 * means["predicted_s"].get<double>(), 1e3 * means["measured_s"].get<double>(),
               means["error_percent"].get<double>());
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
