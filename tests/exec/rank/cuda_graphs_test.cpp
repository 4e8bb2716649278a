// Training in which the work of microbatches is captured and replayed. On a CPU, captured work is
// executed again as for the first microbatch of a slot. A number, a size or a tensor that belongs
// to that microbatch only therefore gives other bits here, as it would on a GPU.

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"
#include "exec/support/small_alexnet.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"

namespace cuda_graphs_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::make;
using test::partition_for;
using test::schedules;
using test::small_setup;

void check_equals_serial(const plan::Schedule& s, const TrainingSetup& setup,
                         ExecutorOptions options = {}, const plan::LoweringOptions& lowering = {}) {
  INFO(plan::to_string(s));
  options.cuda_graphs = true;
  test::check_equals_serial(plan::lower(s, lowering), partition_for(s), setup, options);
}

TEST_CASE("Captured: each schedule trains with the bits of serial training", "[exec][graphs]") {
  for (const auto& s : schedules())
    check_equals_serial(s, small_setup());
  for (const auto& s : {make("dualpipev", 2, 8), make("zb-auto", 3, 6)})
    check_equals_serial(s, small_setup());
}

TEST_CASE("Captured: replicas, ZeRO, clipping, scaling and recomputation change no bit",
          "[exec][graphs]") {
  auto setup = small_setup();
  setup.clip_norm = 0.5;
  for (const auto& s : schedules())
    check_equals_serial(
        s, setup, {.replicas = 2},
        {.replicas = 2, .recompute = plan::RecomputeMode::Full, .zero = 1, .gradient_norm = true});
  setup = small_setup();
  setup.precision = at::kBFloat16;
  setup.loss_scaling = {.scale = 1024, .dynamic = true, .growth_interval = 1};
  check_equals_serial(make("zb-h1", 3, 4), setup, {}, {.gradient_norm = true});
  setup = small_setup();
  setup.exact = false;
  Executor executor(plan::lower(make("gpipe", 2, 4)), partition_for(make("gpipe", 2, 4)), setup,
                    {.cuda_graphs = true});
  Executor plain(plan::lower(make("gpipe", 2, 4)), partition_for(make("gpipe", 2, 4)), setup);
  for (int step = 0; step < 3; ++step)
    CHECK(test::same_bits(executor.step(step)->loss, plain.step(step)->loss));
}

TEST_CASE("Captured: early gradients are set aside, and groups are summed separately",
          "[exec][graphs]") {
  auto setup = small_setup();
  setup.gradient_groups = 4;
  for (const auto& s : {make("v-half", 2, 8), make("zb-h2", 3, 8), make("chimera", 2, 4)})
    check_equals_serial(s, setup);
}

/// Returns a setup with a layer that is declared random.
TrainingSetup with_random_layer() {
  auto setup = small_setup();
  setup.layers[2].random = true;
  return setup;
}

TEST_CASE("Stages with random layers, and evaluations, run without graphs", "[exec][graphs]") {
  const auto s = make("1f1b", 3, 4);
  check_equals_serial(s, with_random_layer());
  const auto setup = small_setup();
  Executor executor(plan::lower(s), partition_for(s), setup, {.cuda_graphs = true});
  Executor plain(plan::lower(s), partition_for(s), setup);
  const auto forwards = plan::lower(make("inference", 3, 6));
  for (int step = 0; step < 3; ++step) {
    CHECK(test::same_bits(executor.step(step)->loss, plain.step(step)->loss));
    const auto own = executor.evaluate(forwards, *setup.data, step, {.outputs = true}).value();
    const auto expected = plain.evaluate(forwards, *setup.data, step, {.outputs = true}).value();
    CHECK(test::same_bits(own.loss, expected.loss));
    REQUIRE(own.outputs.size() == expected.outputs.size());
    for (std::size_t m = 0; m < own.outputs.size(); ++m)
      CHECK(test::same_bits(own.outputs[m].front(), expected.outputs[m].front()));
  }
}

TEST_CASE("Captured: AlexNet draws a new dropout in each microbatch", "[exec][graphs][alexnet]") {
  const auto setup = test::small_alexnet();
  for (const auto& s : {make("1f1b", 2, 4), make("zb-h1", 2, 4)})
    test::check_equals_serial(plan::lower(s), test::small_alexnet_partition, setup,
                              {.cuda_graphs = true});
}

TEST_CASE("Work that changes between microbatches is not captured", "[exec][graphs]") {
  const auto executor = [](const plan::Schedule& s, const TrainingSetup& setup,
                           const plan::LoweringOptions& lowering = {}, bool dynamic = false) {
    Executor(plan::lower(s, lowering), partition_for(s), setup,
             {.cuda_graphs = true, .dynamic_shapes = dynamic});
  };
  CHECK(test::error_of(
            [&] { executor(plan::make_pipedream(2, 4), small_setup(), {.step_every = 1}); }) ==
        "training.cuda_graphs: the program steps its optimizers without a flush and so keeps "
        "several versions of the weights, but a graph uses one. Leave it out");
  CHECK(test::error_of([&] { executor(make("1f1b", 2, 4), small_setup(), {}, true); }) ==
        "training.cuda_graphs: microbatches may differ in size (`dynamic_shapes`), but a graph has "
        "one size. Leave one of them out");
}

/// Tokens whose microbatches have another length from step 2 on.
class Growing final : public Dataset {
 public:
  at::Tensor input(int step, int microbatch) const override {
    return (at::arange(16, at::kLong).view({2, 8}) + microbatch).narrow(1, 0, step < 2 ? 8 : 4) %
           32;
  }
  at::Tensor target(int step, int microbatch) const override {
    return (input(step, microbatch) * 3 + 1) % 32;
  }
};

TEST_CASE("A microbatch of another size than the captured one is rejected", "[exec][graphs]") {
  const Growing data;
  auto setup = small_setup();
  setup.data = &data;
  const auto s = make("1f1b", 2, 4);
  Executor executor(plan::lower(s), partition_for(s), setup, {.cuda_graphs = true});
  executor.step(0);
  executor.step(1);
  try {
    executor.step(2);
    FAIL("it goes on");
  } catch (const RankFailure& failure) {
    CHECK(std::string(failure.what()).find("leave training.cuda_graphs out") != std::string::npos);
  }
}

/// Returns a setup with one more layer, on the first of two stages.
TrainingSetup with_layer(const LayerSpec& layer) {
  auto setup = small_setup();
  setup.layers.insert(setup.layers.begin() + 3, layer);
  return setup;
}
const plan::Partition with_layer_partition{{0, 4, 7}};

/// Adds the number of its microbatch.
struct LooksAtContext final : Layer {
  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    return input + int{context.microbatch} * at::arange(16) / 16;
  }
};

TEST_CASE("A layer that reads its microbatch must declare it, or is rejected by name",
          "[exec][graphs]") {
  const LayerSpec looks{.name = "looks",
                        .build = [] { return std::make_shared<LooksAtContext>(); }};
  const auto s = make("1f1b", 2, 4);
  Executor executor(plan::lower(s), with_layer_partition, with_layer(looks), {.cuda_graphs = true});
  executor.step(0);  // nothing is captured yet
  std::string refusal;
  try {
    executor.step(1);
  } catch (const RankFailure& failure) {
    refusal = failure.what();
  }
  CHECK(refusal ==
        "rank 0, action 0F0, step 1: layer looks uses its step or microbatch, but would be "
        "captured once and replayed for others, because its LayerSpec does not set `varies`. Set "
        "it, or leave training.cuda_graphs out");
  test::check_equals_serial(plan::lower(s), with_layer_partition, with_layer(varying_layer(looks)),
                            {.cuda_graphs = true});
}

}  // namespace cuda_graphs_test
