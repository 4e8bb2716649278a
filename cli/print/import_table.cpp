#include "print/import_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pipewright::cli {

std::string import_table(const plan::ImportedModel& model) {
  const plan::Model& planned = model.planned;
  std::size_t width = 5;
  for (const plan::Layer& layer : planned.layers)
    width = std::max(width, layer.name.size());
  std::string text = fmt::format("{:<{}}  {:>9}  {:>12}  {:>10}  {:>12}  {}\n", "layer", width,
                                 "operators", "parameters", "GFLOPs", "bytes output", "tied");
  for (std::size_t l = 0; l < planned.layers.size(); ++l) {
    const plan::Layer& layer = planned.layers[l];
    const plan::ExportedLayer& from = model.layers.layers[l];
    text += fmt::format("{:<{}}  {:>9}  {:>12}  {:>10.4g}  {:>12}  {}\n", layer.name, width,
                        from.nodes.size(), layer.parameters, layer.forward_flops * 1e-9,
                        crossing_bytes(model.program, from), layer.tied_key);
  }
  text += fmt::format(
      "\n{} layers, {} samples in a microbatch; GFLOPs are for the forward of a sample, bytes for "
      "a microbatch\n",
      planned.layers.size(), model.batch);
  text += model.layers.loss.nodes.empty()
              ? "The loss is the mean cross entropy of the output.\n"
              : fmt::format("The loss takes {} operators.\n", model.layers.loss.nodes.size());
  return text;
}

plan::Json import_json(const plan::ImportedModel& model) {
  plan::Json layers = plan::Json::array();
  const plan::Model& planned = model.planned;
  for (std::size_t l = 0; l < planned.layers.size(); ++l) {
    const plan::Layer& layer = planned.layers[l];
    const plan::ExportedLayer& from = model.layers.layers[l];
    layers.push_back({{"name", layer.name},
                      {"operators", from.nodes.size()},
                      {"parameters", layer.parameters},
                      {"parameter_bytes", layer.parameter_bytes.value},
                      {"forward_flops", layer.forward_flops},
                      {"bytes_handed", crossing_bytes(model.program, from)},
                      {"tied_key", layer.tied_key}});
  }
  return {{"microbatch_size", model.batch},
          {"loss_operators", model.layers.loss.nodes.size()},
          {"layers", std::move(layers)}};
}

}  // namespace pipewright::cli
