#include "pipewright/plan/model/gpt_model.hpp"

#include <fmt/format.h>

#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {
namespace {

std::int64_t linear(std::int64_t in, std::int64_t out) { return in * out + out; }
std::int64_t layer_norm(std::int64_t width) { return 2 * width; }

Layer make_layer(std::string name, std::string kind, std::int64_t parameters, double flops,
                 std::vector<int> output_shape) {
  Layer layer;
  layer.name = std::move(name);
  layer.kind = std::move(kind);
  layer.parameters = parameters;
  layer.parameter_bytes = Bytes{4} * parameters;
  layer.forward_flops = flops;
  layer.output_shape = std::move(output_shape);
  return layer;
}

/// Two norms, attention (qkv, projection) and a feed-forward part four times as wide.
/// FLOPs of s tokens of width h: qkv 6sh², scores 2s²h, weighted values 2s²h, projection 2sh²,
/// feed-forward 16sh²; together 24sh² + 4s²h. Norms, softmax and GELU are not counted.
Layer block(const GptShape& shape, int index) {
  const std::int64_t h = shape.hidden;
  const std::int64_t parameters =
      2 * layer_norm(h) + linear(h, 3 * h) + linear(h, h) + linear(h, 4 * h) + linear(4 * h, h);
  const double tokens = shape.sequence;
  const double width = shape.hidden;
  const double flops = 24 * tokens * width * width + 4 * tokens * tokens * width;
  Layer layer = make_layer(fmt::format("block{}", index), "transformer-block", parameters, flops,
                           {shape.sequence, shape.hidden});
  layer.checkpointable = true;
  return layer;
}

}  // namespace

Model gpt_model(const GptShape& shape) {
  const std::int64_t h = shape.hidden;
  const std::int64_t tables = (std::int64_t{shape.vocabulary} + shape.sequence) * h;
  Model model{.name = "gpt", .layers = {}};
  // Looking up a row and adding two is no matrix product: no FLOPs are counted.
  model.layers.push_back(
      make_layer("embedding", "embedding", tables, 0, {shape.sequence, shape.hidden}));
  for (int index = 0; index < shape.blocks; ++index)
    model.layers.push_back(block(shape, index));
  const double head_flops = 2.0 * shape.sequence * shape.hidden * shape.vocabulary;
  model.layers.push_back(make_layer("head", "norm-and-head",
                                    layer_norm(h) + linear(h, shape.vocabulary), head_flops,
                                    {shape.sequence, shape.vocabulary}));
  return model;
}

}  // namespace pipewright::plan
