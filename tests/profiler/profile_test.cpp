#include "pipewright/profiler/profile/profile.hpp"

#include <ATen/ATen.h>

#include "exec/support/sharded_gpt.hpp"
#include "exec/support/small_transformers.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/training/run_again.hpp"
#include "profiler/support/small_model.hpp"
#include "support/catch.hpp"

namespace profile_test {

// Memory figures are exact, so they are tested exactly; times are tested only for properties that
// hold on the slowest machine.

using namespace pipewright;
using namespace pipewright::profiler;
using plan::Bytes;

struct Small {
  test::Fixed data{at::ones({8, 64})};
  exec::TrainingSetup setup = test::setup_of(
      {test::linear("first", 64, 128),
       engine::function_layer("relu", [](const at::Tensor& x) { return at::relu(x); }),
       engine::function_layer("flatten", [](const at::Tensor& x) { return x.view({-1}); })},
      data);
};

TEST_CASE("Profile: all times are measured, consistent, and based on enough passes", "[profiler]") {
  const Small small;
  LayerBench bench(small.setup);
  int passes = 0;
  const auto costs =
      profile(bench, {1, 5, 5, 0.0}, [&](const Progress& progress) { passes = progress.passes; });
  CHECK(passes == 5);
  REQUIRE(costs.layers.size() == 3);
  CHECK(costs.layers[0].name == "first");
  CHECK(costs.loss.name == "loss");
  for (const plan::LayerCost& layer : costs.layers)
    CHECK(layer.forward.value > 0);
  // The model's input needs no gradient: all of the first backward is weight gradient.
  CHECK(costs.layers[0].input_gradient.value == 0);
  CHECK(costs.layers[0].weight_gradient.value > 0);
  CHECK(costs.layers[1].weight_gradient.value == 0);
  CHECK(costs.layers[1].input_gradient.value > 0);
}

TEST_CASE("Profile: measuring stops as soon as the spread is small enough", "[profiler]") {
  const Small small;
  LayerBench bench(small.setup);
  int passes = 0;
  profile(bench, {0, 3, 1000, 1e9}, [&](const Progress& progress) { passes = progress.passes; });
  CHECK(passes == 3);
}

TEST_CASE("Profile: the stop flag ends it early", "[profiler]") {
  const Small small;
  LayerBench bench(small.setup);
  std::atomic<bool> stop{false};
  int passes = 0;
  profile(
      bench, {0, 1000, 1000, 0.0},
      [&](const Progress& progress) {
        passes = progress.passes;
        stop = passes == 2;
      },
      &stop);
  CHECK(passes == 2);
}

TEST_CASE("Profile: the parameters' gradients are those of training, summed over passes",
          "[profiler]") {
  Small small;
  std::shared_ptr<exec::Layer> first;
  small.setup.layers[0].build = [&, build = small.setup.layers[0].build] {
    first = build();
    return first;
  };
  LayerBench bench(small.setup);
  profile(bench, {0, 2, 2, 1e9});
  REQUIRE(first != nullptr);
  CHECK(first->parameters().at(0).grad().abs().sum().item<float>() > 0);
}

TEST_CASE("Profile: in half precision parameters, activations and input are half as large",
          "[profiler]") {
  Small small;
  LayerBench whole(small.setup);
  const auto of_whole = profile(whole, {0, 1, 1, 1e9});
  small.setup.precision = at::kBFloat16;
  LayerBench half(small.setup);
  const auto of_half = profile(half, {0, 1, 1, 1e9});
  CHECK(of_whole.dtype == "float32");
  CHECK(of_half.dtype == "bfloat16");
  CHECK(of_half.input == Bytes{of_whole.input.value / 2});
  CHECK(of_half.layers[0].parameters == Bytes{2 * (64 * 128 + 128)});
  CHECK(of_half.layers[0].output == Bytes{of_whole.layers[0].output.value / 2});
}

/// A layer that keeps only its input under selective recomputation.
class Exponentials final : public exec::Layer {
 public:
  at::Tensor forward(const at::Tensor& input, const exec::CallContext& context) override {
    const auto work = [](const exec::Tensors& inputs) { return inputs.front().exp().exp().sum(); };
    return context.selective_recompute ? exec::recompute_in_backward(work, {input}) : work({input});
  }
};

TEST_CASE("Profile: selective recomputation saves what the layer no longer keeps", "[profiler]") {
  Small small;
  small.setup.layers[1] = {.name = "exponentials",
                           .build = [] { return std::make_shared<Exponentials>(); }};
  LayerBench bench(small.setup);
  const auto costs = profile(bench, {0, 1, 1, 1e9});
  CHECK(costs.layers[0].selective_activation == Bytes{0});
  CHECK(costs.layers[1].activation == Bytes{2 * 4 * 8 * 128});
  CHECK(costs.layers[1].selective_activation == costs.layers[1].activation);
}

TEST_CASE("Profile: a tensor-parallel rank's layers have its size, and report their all-reduces",
          "[profiler]") {
  for (const int count : {2, 4}) {
    CAPTURE(count);
    const exec::TrainingSetup setup = test::sharded_setup(count);
    LayerBench bench(setup, {}, {.index = count - 1, .count = count, .groups = count});
    const auto costs = profile(bench, {0, 1, 1, 1e9});
    CHECK(costs.tensor == count);
    for (std::size_t l = 0; l < costs.layers.size(); ++l) {
      Bytes parameters;
      for (const at::Tensor& each :
           bench.build({.first = static_cast<int>(l), .last = static_cast<int>(l) + 1})
               ->layers()
               .at(static_cast<int>(l))
               .parameters())
        parameters += Bytes{static_cast<std::int64_t>(each.nbytes())};
      CHECK(costs.layers[l].parameters == parameters);
    }
    const Bytes hidden = costs.layers[0].output;
    CHECK(hidden == Bytes{2 * 8 * 20 * 4});
    CHECK(costs.layers[0].tensor_all_reduces ==
          plan::PartitionCollectives{.times = 1, .bytes = hidden, .backward_times = 0});
    CHECK(costs.layers[1].tensor_all_reduces ==
          plan::PartitionCollectives{.times = 2, .bytes = hidden, .backward_times = 2});
    CHECK(costs.layers[5].tensor_all_reduces ==
          plan::PartitionCollectives{.times = 0, .bytes = hidden, .backward_times = 1});
    // The loss gathers the largest logit of each token and sums two numbers per token.
    CHECK(costs.loss.tensor_all_reduces.times == 2);
    CHECK(costs.loss.tensor_all_reduces.backward_times == 0);
    if (count == 2)
      CHECK(costs.loss.tensor_all_reduces.bytes == Bytes{2 * 8 * 4 * 3 / 2});
  }
}

/// Makes a model with four experts in each layer, where each token goes to one of them.
exec::TrainingSetup mixture_setup(double bias_of_first) {
  plan::TransformerShape shape = test::small_biased_mixture();
  shape.config.experts = 4;
  shape.config.experts_per_token = 1;
  auto setup = test::small_setup_of(shape);
  for (exec::LayerSpec& spec : setup.layers)
    spec.build = [build = spec.build, bias_of_first] {
      const auto layer = build();
      const at::NoGradGuard no_grad;
      for (const auto& parameter : layer->named_parameters())
        if (parameter.key().ends_with("router.bias"))
          parameter.value().select(0, 0).add_(bias_of_first);
      return layer;
    };
  return setup;
}

TEST_CASE("Profile: the load imbalance of experts is measured with the data's tokens",
          "[profiler]") {
  const auto loads = [](double bias_of_first) {
    const exec::TrainingSetup setup = mixture_setup(bias_of_first);
    LayerBench bench(setup);
    return profile(bench, {0, 1, 1, 1e9}).layers;
  };
  const auto even = loads(0), uneven = loads(1000);
  for (std::size_t layer = 0; layer < even.size(); ++layer) {
    CAPTURE(layer);
    if (layer == 0 || layer + 1 == even.size()) {  // embedding and head
      CHECK(even[layer].expert_loads.empty());
      continue;
    }
    REQUIRE(even[layer].expert_loads.size() == 2);
    for (const plan::ExpertLoad& load : even[layer].expert_loads) {
      CHECK(load.busiest >= 1);
      CHECK(load.busiest < load.ranks);
    }
    CHECK((uneven[layer].expert_loads == std::vector<plan::ExpertLoad>{{2, 2}, {4, 4}}));
  }
}

TEST_CASE("Profile: data of other tensor-parallel ranks are simulated in their shapes",
          "[profiler]") {
  const at::Tensor own = at::arange(7, at::kFloat);
  for (const auto& [count, groups] : {std::pair(2, 2), std::pair(2, 6), std::pair(3, 3),
                                      std::pair(3, 6), std::pair(4, 4), std::pair(4, 12)})
    for (int index = 0; index < count; ++index) {
      CAPTURE(count, groups, index);
      PlayedShards shards({.index = index, .count = count, .groups = groups, .copies = true});
      const exec::TensorParallelPlace place{
          .index = index, .count = count, .groups = groups, .group = &shards};
      const exec::Tensors parts(static_cast<std::size_t>(groups / count), own);
      const at::Tensor sum = exec::added_up(parts, place);
      CHECK(sum.sizes() == own.sizes());
      CHECK(exec::from_all(own, place).size() == static_cast<std::size_t>(count));
      CHECK(shards.is_alone());
      // With partitioned tokens, a sum keeps this rank's tokens, which are gathered later.
      const at::Tensor all_tokens = at::ones({2, 12, 3});
      const at::Tensor kept =
          exec::sum_over_groups(exec::Tensors(static_cast<std::size_t>(groups / count), all_tokens),
                                place, exec::Tokens::Cut);
      CHECK(kept.sizes() == at::IntArrayRef({2, 12 / count, 3}));
      CHECK(exec::for_own_groups(kept, place, exec::Tokens::Cut).front().sizes() ==
            all_tokens.sizes());
      CHECK(exec::added_up(parts, place).sizes() == own.sizes());  // unchanged
    }
}

}  // namespace profile_test
