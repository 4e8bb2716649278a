#include <ATen/ATen.h>

#include "pipewright/profiler/profile/profile.hpp"
#include "profiler/support/small_model.hpp"
#include "support/catch.hpp"

namespace layer_memory_test {

using namespace pipewright;
using namespace pipewright::profiler;
using engine::function_layer;
using plan::Bytes;

/// Returns the cost of one layer after a layer without parameters, which makes its input need a
/// gradient.
plan::LayerCost cost_of(const exec::LayerSpec& layer) {
  const test::Fixed data(at::ones({8, 64}));
  const exec::TrainingSetup setup = test::setup_of(
      {function_layer("before", [](const at::Tensor& x) { return x * 2; }), layer}, data);
  LayerBench bench(setup);
  return profile(bench, {0, 1, 1, 1e9}).layers.at(1);
}

TEST_CASE("Memory of a linear layer: it saves only its input", "[profiler][memory]") {
  const auto cost = cost_of(test::linear("linear", 64, 32));
  CHECK(cost.parameters == Bytes{4 * (64 * 32 + 32)});
  CHECK(cost.output == Bytes{4 * 8 * 32});
  CHECK(cost.activation == Bytes{0});
  CHECK(cost.saves_input);
  CHECK_FALSE(cost.saves_output);
  CHECK_FALSE(cost.output_is_view);
  CHECK(cost.forward_peak == cost.output);
  // The weight gradient needs the output's gradient, and the input, which does not count here.
  CHECK(cost.freed_by_input_gradient == Bytes{0});
  CHECK(cost.gradients_for_weights == cost.output);
  CHECK(cost.output_gradient_for_weights);
  CHECK(cost.input_for_weights);
  // At the peak, the gradients of output, input and weight exist at the same time.
  CHECK(cost.backward_peak >= Bytes{4 * (8 * 32 + 8 * 64 + 64 * 32)});
}

TEST_CASE("Memory of a ReLU: it saves its output, not its input", "[profiler][memory]") {
  const auto cost =
      cost_of(function_layer("relu", [](const at::Tensor& x) { return at::relu(x); }));
  CHECK(cost.saves_output);
  CHECK_FALSE(cost.saves_input);
  CHECK(cost.activation == cost.output);
  CHECK(cost.freed_by_input_gradient == cost.output);
  CHECK(cost.gradients_for_weights == Bytes{0});
  CHECK_FALSE(cost.output_gradient_for_weights);
  CHECK_FALSE(cost.input_for_weights);
}

TEST_CASE("Memory of a flatten: a view saves nothing", "[profiler][memory]") {
  const auto cost =
      cost_of(function_layer("flatten", [](const at::Tensor& x) { return x.flatten(); }));
  CHECK(cost.output_is_view);
  CHECK_FALSE(cost.saves_output);
  CHECK(cost.activation == Bytes{0});
  CHECK(cost.forward_peak == Bytes{0});
}

TEST_CASE("Memory of two operations: the tensor between them counts as activation",
          "[profiler][memory]") {
  // exp saves its output and sin its input, which is that output: 8 x 64 floats once.
  const auto cost =
      cost_of(function_layer("both", [](const at::Tensor& x) { return x.exp().sin(); }));
  CHECK(cost.activation == Bytes{4 * 8 * 64});
  CHECK_FALSE(cost.saves_input);
  CHECK_FALSE(cost.saves_output);
  CHECK(cost.forward_peak == Bytes{2 * 4 * 8 * 64});
}

TEST_CASE("Memory of a forward without a graph: intermediate tensors are freed",
          "[profiler][memory]") {
  // A graph keeps all four tensors of 8 x 64 floats; without a graph, a step has its input and
  // output.
  const auto cost = cost_of(function_layer("chain", [](const at::Tensor& x) {
    at::Tensor y = x;
    for (int step = 0; step < 4; ++step)
      y = y.exp();
    return y;
  }));
  CHECK(cost.forward_peak == Bytes{4 * 4 * 8 * 64});
  CHECK(cost.forward_peak_without_graph == Bytes{2 * 4 * 8 * 64});
}

TEST_CASE("Memory of a first layer: the input gradient leaves everything to the weight gradient",
          "[profiler][memory]") {
  const test::Fixed data(at::ones({8, 64}));
  const exec::TrainingSetup setup = test::setup_of({test::linear("linear", 64, 32)}, data);
  LayerBench bench(setup);
  const auto cost = profile(bench, {0, 1, 1, 1e9}).layers.at(0);
  CHECK(cost.input_gradient_peak == cost.output);
  CHECK(cost.gradients_for_weights == cost.output);
  CHECK(cost.output_gradient_for_weights);
}

}  // namespace layer_memory_test
