#include "pipewright/profiler/profile.hpp"

#include <torch/nn.h>

#include "support/catch.hpp"

namespace profile_test {

// What the profiler says of memory is exact, so it is tested exactly; of times only what must hold
// on the slowest machine.

using namespace pipewright;
using namespace pipewright::profiler;
using plan::Bytes;
namespace nn = torch::nn;

/// Counts nothing: for tests of times alone.
MemoryGauge no_memory() {
  return {[] { return Bytes{}; }, [] { return Bytes{}; }, [] {}};
}

Probe linear_probe(const std::string& name, int in, int out) {
  nn::Linear linear(in, out);
  for (at::Tensor& parameter : linear->parameters())
    parameter.mutable_grad() = at::zeros_like(parameter);
  return {name, [linear](const at::Tensor& x) mutable { return linear->forward(x); },
          linear->parameters(), [] {}};
}

Subject small_subject() {
  Subject subject;
  subject.layers = {linear_probe("first", 64, 128),
                    {"relu", [](const at::Tensor& x) { return at::relu(x); }, {}, {}},
                    {"flatten", [](const at::Tensor& x) { return x.view({-1}); }, {}, {}}};
  subject.loss = {"loss", [](const at::Tensor& x) { return x.sum(); }, {}, {}};
  subject.load = [] { return at::ones({8, 64}); };
  subject.microbatch_size = 8;
  subject.memory = no_memory();
  return subject;
}

TEST_CASE("profile: times are there, add up, and rest on enough passes", "[profiler]") {
  int passes = 0;
  const auto costs = profile(small_subject(), {1, 5, 5, 0.0},
                             [&](const Progress& progress) { passes = progress.passes; });
  CHECK(passes == 5);
  REQUIRE(costs.layers.size() == 3);
  CHECK(costs.layers[0].name == "first");
  CHECK(costs.loss.name == "loss");
  for (const plan::LayerCost& layer : costs.layers)
    CHECK(layer.forward.value > 0);
  // The input of the model needs no gradient: all of the first backward is for the weights.
  CHECK(costs.layers[0].input_gradient.value == 0);
  CHECK(costs.layers[0].weight_gradient.value > 0);
  CHECK(costs.layers[1].weight_gradient.value == 0);
  CHECK(costs.layers[1].input_gradient.value > 0);
}

TEST_CASE("profile: stops as soon as the spread is small enough", "[profiler]") {
  int passes = 0;
  profile(small_subject(), {0, 3, 1000, 1e9},
          [&](const Progress& progress) { passes = progress.passes; });
  CHECK(passes == 3);
}

TEST_CASE("profile: a stop ends it early", "[profiler]") {
  std::atomic<bool> stop{false};
  int passes = 0;
  profile(
      small_subject(), {0, 1000, 1000, 0.0},
      [&](const Progress& progress) {
        passes = progress.passes;
        stop = passes == 2;
      },
      &stop);
  CHECK(passes == 2);
}

TEST_CASE("profile: the parameters' gradients are those of training, summed over passes",
          "[profiler]") {
  const auto subject = small_subject();
  const at::Tensor weight = subject.layers[0].parameters[0];
  profile(subject, {0, 2, 2, 1e9});
  CHECK(weight.grad().abs().sum().item<float>() > 0);
}

}  // namespace profile_test
