// A model that is not built in, as a user's program declares it.
#pragma once

#include <fmt/format.h>

#include "pipewright/plan/model/declare_model.hpp"

namespace pipewright::test {

/// Layers of equal width over the bytes of a text.
struct StackShape {
  static constexpr auto kind = "stack";
  int depth = 3;
  int width = 4;
  friend bool operator==(const StackShape&, const StackShape&) = default;
};

template <plan::MaybeConst<StackShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("depth", s.depth, plan::within({.least = 1, .most = 9}), "How many layers.");
  visit("width", s.width, plan::within({.least = 1, .most = 99}), "Of each; an even number.");
}

inline plan::Model stack_model(const StackShape& shape) {
  plan::Model model{.name = "stack", .layers = {}};
  for (int at = 0; at < shape.depth; ++at) {
    plan::Layer& layer = model.layers.emplace_back();
    layer.name = fmt::format("layer{}", at);
    layer.kind = "linear";
    layer.forward_flops = 1e9;
    layer.output_shape = {shape.width};
  }
  return model;
}

inline plan::Sample stack_sample(const StackShape& shape) {
  return {.units = 5,
          .input = {.shape = {shape.width}, .is_index = true},
          .target = {.shape = {2, shape.width}}};
}

inline plan::LayerEstimate stack_estimate(const StackShape& shape, const plan::Layer&) {
  return {.kept = 10.0 * shape.width, .attention_kept = 3.0 * shape.width, .attention_flops = 1e9};
}

inline void check_stack(const StackShape& shape, plan::JsonObject& object) {
  if (shape.width % 2 != 0)
    object.error("width", fmt::format("{} is odd: the nearest that is even is {}", shape.width,
                                      shape.width + 1));
}

}  // namespace pipewright::test

namespace pipewright::plan {

template <>
inline const ModelDescriptor& descriptor_of<test::StackShape>() {
  static const ModelDescriptor stack =
      declare_model<test::StackShape>({.meaning = "A stack of equal layers.",
                                       .data = text_data,
                                       .unit = "words",
                                       .layers = test::stack_model,
                                       .sample = test::stack_sample,
                                       .estimate = test::stack_estimate,
                                       .check = test::check_stack});
  return stack;
}

}  // namespace pipewright::plan
