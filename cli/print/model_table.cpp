#include "print/model_table.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "pipewright/plan/model/transformer_layers.hpp"
#include "print/console.hpp"

namespace pipewright::cli {
namespace {

using plan::TransformerLayer;

/// Consecutive layers that differ only in their names.
struct Alike {
  TransformerLayer layer;
  std::string last;
  int count = 1;
};

std::vector<Alike> alike(const std::vector<TransformerLayer>& layers) {
  std::vector<Alike> rows;
  for (const TransformerLayer& layer : layers) {
    TransformerLayer same = layer;
    if (!rows.empty())
      same.name = rows.back().layer.name;
    if (!rows.empty() && same == rows.back().layer)
      rows.back().last = layer.name, ++rows.back().count;
    else
      rows.push_back({.layer = layer, .last = layer.name});
  }
  return rows;
}

double millions(plan::Bytes bytes) { return static_cast<double>(bytes.value) / 1e6; }
double millions(std::int64_t count) { return static_cast<double>(count) / 1e6; }

std::string numbers(const TransformerLayer& layer, plan::RecomputeMode recompute) {
  return fmt::format("{:>15}  {:>10.1f}  {:>10.1f}  {:>10.1f}  {:>10.1f}  {:>10.1f}  {:>8.1f}\n",
                     layer.parameters, millions(layer.device_parameters), layer.product_flops / 1e9,
                     layer.attention_flops / 1e9, millions(layer.weights),
                     millions(layer.kept_under(recompute)), millions(layer.output));
}

std::string how(const plan::TransformerTraining& training, const plan::Cut& cut) {
  return fmt::format(
      "microbatches of {} × {} tokens; tensor {}{}, expert {}, context {}; recompute {}, {}\n",
      cut.microbatch, training.sequence, cut.tensor,
      cut.sequence_parallel ? " with sequence parallelism" : "", cut.expert, cut.context,
      plan::to_string(cut.recompute),
      training.attention == plan::AttentionKind::Fused ? "fused attention" : "scores in memory");
}

plan::Json numbers_json(const TransformerLayer& layer) {
  return {{"parameters", layer.parameters},
          {"expert_parameters", layer.expert_parameters},
          {"active_parameters", layer.active_parameters},
          {"tied_parameters", layer.tied_parameters},
          {"device_parameters", layer.device_parameters},
          {"device_expert_parameters", layer.device_expert_parameters},
          {"weight_bytes", layer.weights.value},
          {"product_flops", layer.product_flops},
          {"attention_flops", layer.attention_flops},
          {"kept_bytes",
           {{"none", layer.kept.value},
            {"selective", layer.kept_selective.value},
            {"full", layer.kept_full.value}}}};
}

}  // namespace

std::string model_table(const models::DescribedTransformer& transformer) {
  const auto layers = plan::layers_of(transformer.training, transformer.cut);
  const TransformerLayer total = plan::total_of(layers);
  std::string text =
      fmt::format("{}: {} parameters", transformer.training.model.name, total.parameters);
  if (total.expert_parameters > 0)
    text += fmt::format(", {} of them in experts; a token uses {}", total.expert_parameters,
                        total.active_parameters);
  if (transformer.training.model.predictions > 0)
    text += transformer.training.predictions
                ? ", with multi-token prediction (MTP)"
                : ", without multi-token prediction (--predictions adds it)";
  text += "\n" + how(transformer.training, transformer.cut);
  text +=
      fmt::format("{:<20}  {:<17}  {:>15}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>8}\n", "", "",
                  "parameters", "on device", "products", "attention", "weights", "kept", "output");
  text += fmt::format("{:<20}  {:<17}  {:>15}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>8}\n",
                      "layer", "kind", "", "M", "GFLOP", "GFLOP", "MB", "MB", "MB");
  for (const Alike& row : alike(layers)) {
    const std::string name =
        row.count == 1 ? row.layer.name : fmt::format("{} … {}", row.layer.name, row.last);
    text += fmt::format("{:<20}  {:<17}  {}", name, plan::to_string(row.layer.kind),
                        numbers(row.layer, transformer.cut.recompute));
  }
  return text +
         fmt::format("{:<20}  {:<17}  {}", "all", "", numbers(total, transformer.cut.recompute));
}

plan::Json model_json(const models::DescribedTransformer& transformer) {
  const auto layers = plan::layers_of(transformer.training, transformer.cut);
  const plan::TransformerTraining& training = transformer.training;
  const plan::Cut& cut = transformer.cut;
  plan::Json json = {{"name", transformer.training.model.name},
                     {"tensor", cut.tensor},
                     {"sequence_parallel", cut.sequence_parallel},
                     {"expert", cut.expert},
                     {"context", cut.context},
                     {"microbatch", cut.microbatch},
                     {"sequence", training.sequence},
                     {"recompute", plan::to_string(transformer.cut.recompute)},
                     {"predictions", training.predictions},
                     {"total", numbers_json(plan::total_of(layers))},
                     {"layers", plan::Json::array()}};
  for (const TransformerLayer& layer : layers) {
    plan::Json row = {{"name", layer.name}, {"kind", plan::to_string(layer.kind)}};
    row.update(numbers_json(layer));
    row["output_bytes"] = layer.output.value;
    json["layers"].push_back(std::move(row));
  }
  return json;
}

void say_reading(const models::DescribedTransformer& transformer, const std::string& file) {
  for (const std::string& assumed : transformer.assumed)
    say(fmt::format("{}: assumed: {}", file, assumed));
  for (const models::UncountedOption& each : transformer.uncounted)
    if (each.of_model)
      say(fmt::format("{}: {} {}", file, each.option, each.reason));
}

}  // namespace pipewright::cli
