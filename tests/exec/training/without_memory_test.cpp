#include "pipewright/exec/training/without_memory.hpp"

#include <ATen/ATen.h>
#include <sys/resource.h>
#include <torch/nn/modules/linear.h>

#include "exec/support/sharded_gpt.hpp"
#include "exec/support/small_transformers.hpp"
#include "pipewright/engine/models/alexnet.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/rank/training_state.hpp"
#include "support/catch.hpp"

namespace without_memory_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

/// Returns the peak memory of this process, in bytes.
std::int64_t highest() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

TEST_CASE("A model of 50 GB is counted in a small process", "[exec][memory]") {
  constexpr std::int64_t hidden = 12'288, blocks = 7, words = 50'000, sequence = 2'048;
  const auto layers = gpt_layers(
      {.blocks = blocks, .hidden = hidden, .heads = 96, .sequence = sequence, .vocabulary = words});
  const std::int64_t before = highest();
  const auto counts = parameter_counts(layers);
  CHECK(highest() - before < 50'000'000);
  REQUIRE(counts.size() == blocks + 2);
  CHECK(counts[0] == (words + sequence) * hidden);
  for (std::size_t block = 1; block <= blocks; ++block)
    CHECK(counts[block] == 12 * hidden * hidden + 13 * hidden);
  CHECK(counts.back() == words * hidden + words + 2 * hidden);
}

/// Compares the shapes of parameters and buffers, with and without memory.
void check_equal_shapes(const TrainingSetup& setup, const TensorParallelPlace& place = {}) {
  for (int layer = 0; layer < static_cast<int>(setup.layers.size()); ++layer) {
    CAPTURE(layer);
    const auto with = build_layer(setup, layer, at::kCPU, place);
    const auto without = build_without_memory(setup, layer, place);
    const auto expected = with->named_parameters(), found = without->named_parameters();
    REQUIRE(found.size() == expected.size());
    for (const auto& parameter : expected) {
      const at::Tensor& own = found[parameter.key()];
      CHECK(own.is_meta());
      CHECK(own.sizes() == parameter.value().sizes());
      CHECK(own.dtype() == parameter.value().dtype());
      CHECK(own.requires_grad() == parameter.value().requires_grad());
    }
  }
}

TEST_CASE("Without memory every model's layers have the same parameters, also when partitioned",
          "[exec][memory]") {
  auto setup = test::small_setup();
  check_equal_shapes(setup);
  setup.precision = at::kBFloat16;
  check_equal_shapes(setup);
  check_equal_shapes(test::sharded_setup(2), {.index = 1, .count = 2, .groups = 2});
  for (const plan::TransformerShape& shape :
       {test::small_llama(), test::small_gpt2(), test::small_biased_mixture()})
    check_equal_shapes(test::small_setup_of(shape));
  auto images = test::small_setup();
  images.layers = alexnet_layers({.image_size = 64}, 3);
  check_equal_shapes(images);
}

TEST_CASE("Without memory outputs have the same shapes", "[exec][memory]") {
  const auto setup = test::small_setup();
  Tensors values{setup.data->input(0, 0)};
  for (int layer = 0; layer < static_cast<int>(setup.layers.size()); ++layer) {
    const auto& spec = setup.layers[static_cast<std::size_t>(layer)];
    const auto without = outputs_without_memory(spec, *build_without_memory(setup, layer),
                                                {values.at(0).to(at::kMeta)});
    REQUIRE(without.has_value());
    const at::NoGradGuard no_grad;
    values = run_layer(spec, *build_layer(setup, layer), layer, 0, values, {});
    CHECK(without->at(0).sizes() == values.at(0).sizes());
    CHECK(without->at(0).dtype() == values.at(0).dtype());
  }
}

/// A layer whose width is a random number that it draws.
class Drawn final : public Layer {
 public:
  Drawn() {
    const auto width = at::full({1}, 5).item<std::int64_t>();
    weight = register_parameter("weight", at::ones({width, 2}));
  }
  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return (input.sum() > 0).item<bool>() ? input : input.repeat({2});
  }
  at::Tensor weight;
};

TEST_CASE("A layer that reads its numbers is counted with them", "[exec][memory]") {
  const std::vector<LayerSpec> layers{
      {.name = "drawn", .build = [] { return std::make_shared<Drawn>(); }}};
  CHECK(parameter_counts(layers) == std::vector<std::int64_t>{10});
  const auto built = build_without_memory(layers, 0);
  CHECK(built->parameters().at(0).is_cpu());
  CHECK_FALSE(outputs_without_memory(layers[0], *built, {at::ones({3}, at::kMeta)}).has_value());
}

TEST_CASE("A copied layer keeps its own numbers, and frozen ones do not count", "[exec][memory]") {
  torch::nn::Linear module(3, 4);
  module->bias.set_requires_grad(false);
  const std::vector<LayerSpec> layers{copied_layer("copied", module)};
  CHECK(parameter_counts(layers) == std::vector<std::int64_t>{12});
  CHECK(module->weight.is_cpu());
}

TEST_CASE("Afterwards tensors have memory again", "[exec][memory]") {
  {
    const WithoutMemory guard;
    CHECK(at::ones({3}).is_meta());
    CHECK(at::arange(4, at::TensorOptions(at::kCPU)).is_meta());
    CHECK(at::zeros_like(at::ones({2})).is_meta());
  }
  CHECK(at::ones({3}).sum().item<float>() == 3);
}

}  // namespace without_memory_test
