#pragma once

// Building blocks for the plans of Pipewright's own models: float32 layers whose costs are counted
// from sizes.

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/model.hpp"
#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::plan {

/// Parameters of a linear layer with bias, and of a norm with bias.
inline std::int64_t linear_parameters(std::int64_t in, std::int64_t out) { return in * out + out; }
inline std::int64_t norm_parameters(std::int64_t width) { return 2 * width; }

inline Layer planned_layer(std::string name, std::string kind, std::int64_t parameters,
                           double flops, std::vector<int> output_shape) {
  Layer layer;
  layer.name = std::move(name);
  layer.kind = std::move(kind);
  layer.parameters = parameters;
  layer.parameter_bytes = Bytes{4} * parameters;
  layer.forward_flops = flops;
  layer.output_shape = std::move(output_shape);
  return layer;
}

/// Returns the plan of a transformer block for s tokens of width h: two norms, attention (qkv,
/// projection) and a feed-forward part four times as wide. FLOPs: qkv 6sh², scores 2s²h, weighted
/// values 2s²h, projection 2sh², feed-forward 16sh²; together 24sh² + 4s²h. Norms, softmax and GELU
/// are not counted.
inline Layer planned_block(std::string name, int tokens, int width) {
  const std::int64_t h = width;
  const double s = tokens, w = width;
  Layer layer =
      planned_layer(std::move(name), "transformer-block",
                    2 * norm_parameters(h) + linear_parameters(h, 3 * h) + linear_parameters(h, h) +
                        linear_parameters(h, 4 * h) + linear_parameters(4 * h, h),
                    24 * s * w * w + 4 * s * s * w, {tokens, width});
  layer.checkpointable = true;
  return layer;
}

/// Returns the number of values that such a block saves besides its input: the outputs of both
/// norms and their two statistics per token, queries, keys and values, the attention output and its
/// sum with the input, the wide layer before and after its GELU, and the log-sum-exp of each head.
inline double kept_by_block(double tokens, double width, double heads) {
  return tokens * (15 * width + 4 + heads);
}

/// Returns the number of values that a norm followed by a matrix product saves.
inline double kept_by_head(double tokens, double width) { return tokens * (width + 2); }

/// Returns why `heads` cannot be divided evenly among `parts`, and which numbers would do.
inline std::vector<std::string> faults_of_head_cut(int heads, int parts) {
  const auto possible = [&](int size) { return heads % size == 0; };
  if (possible(parts))
    return {};
  return {fmt::format("{} heads cannot be divided into {} parts evenly; {} would do", heads, parts,
                      nearest_sizes(parts, heads, possible))};
}

/// Records an error for heads that cannot share the width equally.
inline void check_heads(int heads, int hidden, JsonObject& object) {
  if (hidden % heads != 0)
    object.error("heads",
                 fmt::format("{} heads cannot share a hidden width of {} equally: {} would do",
                             heads, hidden, nearest_sizes(heads, hidden, [&](int some) {
                               return hidden % some == 0;
                             })));
}

}  // namespace pipewright::plan
