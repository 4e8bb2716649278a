#include <numeric>

#include "commands.hpp"
#include "console.hpp"
#include "planning.hpp"

namespace pipewright::cli {
namespace {

struct PartitionOptions {
  std::string method = "cost";
  int parts = 0;
  std::vector<double> weights;
  std::string model;
  std::string costs;
  bool json = false;
};

/// A model file, or a scenario that names one.
plan::Model read_model(const std::string& file) {
  const auto document = plan::JsonDocument::read(file);
  const plan::Json& root = document.root();
  if (root.is_object() && root.value("format", "") == "pipewright/scenario/1")
    return model_of(plan::scenario_from_json(document));
  return plan::model_from_json(document);
}

std::vector<double> weights_of(const PartitionOptions& options) {
  if (!options.weights.empty())
    return options.weights;
  if (!options.costs.empty())
    return layer_weights(options.method,
                         plan::layer_costs_from_json(plan::JsonDocument::read(options.costs)));
  if (options.model.empty())
    throw plan::InputError("nothing to partition: give --weights, --model or --costs");
  if (options.method == "cost")
    throw plan::InputError(
        "--method cost needs measured costs: give --costs (pipewright profile makes them), or take "
        "--method parameters");
  std::vector<double> weights;
  for (const plan::Layer& layer : read_model(options.model).layers)
    weights.push_back(static_cast<double>(layer.parameters));
  return weights;
}

int partition(const PartitionOptions& options) {
  const auto& methods = plan::partition_methods();
  if (std::find(methods.begin(), methods.end(), options.method) == methods.end())
    throw plan::InputError(fmt::format("--method {}: not known{} (possible: {})", options.method,
                                       plan::did_you_mean(options.method, methods),
                                       plan::listed(methods)));
  const auto weights = weights_of(options);
  const auto boundaries = boundaries_by(options.method, weights, options.parts);
  std::vector<double> sums;
  for (std::size_t part = 0; part + 1 < boundaries.size(); ++part)
    sums.push_back(std::accumulate(weights.begin() + boundaries[part],
                                   weights.begin() + boundaries[part + 1], 0.0));
  if (options.json) {
    const plan::Json answer{{"boundaries", boundaries}, {"weights", sums}};
    fmt::print("{}\n", answer.dump(2));
    return Done;
  }
  fmt::print("{}\n", plan::to_string(boundaries));
  for (std::size_t part = 0; part < sums.size(); ++part)
    fmt::print("part {}: items {} to {}, weight {:.6g}\n", part, boundaries[part],
               boundaries[part + 1] - 1, sums[part]);
  return Done;
}

}  // namespace

Action add_partition(CLI::App& program) {
  auto* const command =
      program.add_subcommand("partition", "Cut layers into parts, the heaviest as light as can be");
  auto options = std::make_shared<PartitionOptions>();
  command->add_option("--method", options->method, "cost, parameters or uniform")
      ->capture_default_str();
  command->add_option("--parts", options->parts, "How many parts")->required();
  auto* const weights =
      command->add_option("--weights", options->weights, "What each item weighs")->delimiter(',');
  auto* const model = command->add_option("--model", options->model, "A model or scenario file");
  auto* const costs =
      command->add_option("--costs", options->costs, "Layer costs, measured before");
  weights->excludes(model)->excludes(costs);
  model->excludes(costs);
  command->add_flag("--json", options->json, "Print one JSON document");
  command->footer(
      "Examples: pipewright partition --parts 2 --weights 3,1,2\n"
      "          pipewright partition --method parameters --parts 2 --model "
      "scenarios/alexnet-cifar10/scenario.json");
  return [options] { return partition(*options); };
}

}  // namespace pipewright::cli
