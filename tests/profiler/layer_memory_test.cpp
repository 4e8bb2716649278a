#include <torch/nn.h>

#include "pipewright/exec/rank/memory_meter.hpp"
#include "pipewright/exec/stage/split_backward.hpp"
#include "pipewright/profiler/profile.hpp"
#include "support/catch.hpp"

namespace layer_memory_test {

using namespace pipewright;
using namespace pipewright::profiler;
using plan::Bytes;
namespace nn = torch::nn;

/// The cost of one layer after a parameter-free layer that makes its input need a gradient.
plan::LayerCost cost_of(const Probe& probe) {
  exec::MemoryAccount account;
  const exec::ChargeTo charge(account);
  Subject subject;
  subject.layers = {{"before", [](const at::Tensor& x) { return x * 2; }, {}, {}}, probe};
  subject.loss = {"loss", [](const at::Tensor& x) { return x.sum(); }, {}, {}};
  subject.load = [] { return at::ones({8, 64}); };
  subject.memory = {[&] { return account.held(); }, [&] { return account.peak(); },
                    [&] { account.reset_peak(); }};
  subject.input_gradient = [](const at::Tensor& output, const at::Tensor& gradient,
                              const at::Tensor& input) {
    const auto split = std::make_shared<exec::SplitBackward>();
    const auto gradients = split->input_gradients({output}, {gradient}, {input});
    return HalfBackward{gradients.front(), [split] { split->weight_gradients(); }};
  };
  return profile(subject, {0, 1, 1, 1e9}).layers.at(1);
}

TEST_CASE("memory of a linear layer: it keeps its input, nothing else", "[profiler][memory]") {
  nn::Linear linear(64, 32);
  for (at::Tensor& parameter : linear->parameters())
    parameter.mutable_grad() = at::zeros_like(parameter);
  const auto cost = cost_of({"linear",
                             [&](const at::Tensor& x) { return linear->forward(x); },
                             linear->parameters(),
                             {}});
  CHECK(cost.parameters == Bytes{4 * (64 * 32 + 32)});
  CHECK(cost.output == Bytes{4 * 8 * 32});
  CHECK(cost.activation == Bytes{0});
  CHECK(cost.saves_input);
  CHECK_FALSE(cost.saves_output);
  CHECK_FALSE(cost.output_is_view);
  CHECK(cost.forward_peak == cost.output);
  // W needs the output's gradient, and the input, which does not count here.
  CHECK(cost.freed_by_input_gradient == Bytes{0});
  CHECK(cost.gradients_for_weights == cost.output);
  // The gradients of output, input and weight live together at the most.
  CHECK(cost.backward_peak >= Bytes{4 * (8 * 32 + 8 * 64 + 64 * 32)});
}

TEST_CASE("memory of a ReLU: it keeps its output, not its input", "[profiler][memory]") {
  const auto cost = cost_of({"relu", [](const at::Tensor& x) { return at::relu(x); }, {}, {}});
  CHECK(cost.saves_output);
  CHECK_FALSE(cost.saves_input);
  CHECK(cost.activation == cost.output);
  CHECK(cost.freed_by_input_gradient == cost.output);
  CHECK(cost.gradients_for_weights == Bytes{0});
}

TEST_CASE("memory of a flatten: a view keeps nothing", "[profiler][memory]") {
  const auto cost = cost_of({"flatten", [](const at::Tensor& x) { return x.flatten(); }, {}, {}});
  CHECK(cost.output_is_view);
  CHECK_FALSE(cost.saves_output);
  CHECK(cost.activation == Bytes{0});
  CHECK(cost.forward_peak == Bytes{0});
}

TEST_CASE("memory of two operations: what lies between them counts as activation",
          "[profiler][memory]") {
  // exp saves its output, the sine its input, which is that output: 8 x 64 floats once.
  const auto cost = cost_of({"both", [](const at::Tensor& x) { return x.exp().sin(); }, {}, {}});
  CHECK(cost.activation == Bytes{4 * 8 * 64});
  CHECK_FALSE(cost.saves_input);
  CHECK_FALSE(cost.saves_output);
  CHECK(cost.forward_peak == Bytes{2 * 4 * 8 * 64});
}

}  // namespace layer_memory_test
