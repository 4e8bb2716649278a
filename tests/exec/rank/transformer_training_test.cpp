// Decoders of several families in pipelines with tensor-parallel ranks and replicas: training has
// the bits of serial training for all sizes. Also covers gradient accumulation in float32.

#include <map>
#include <tuple>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"
#include "exec/support/sharded_gpt.hpp"
#include "exec/support/small_transformers.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/program/gradient_groups.hpp"

namespace transformer_training_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::check_equals_serial;
using test::make;
using test::partition_for;
using test::small_setup_of;

/// `tied`: the first and the last stage share a weight.
plan::Program program_of(const test::Sizes& sizes, int zero, bool norm = false, bool tied = false) {
  const int last = plan::stage_count(sizes.schedule) - 1;
  return plan::lower(sizes.schedule,
                     {.replicas = sizes.replicas,
                      .tied_stages = tied ? std::vector{0, last} : std::vector<int>{},
                      .zero = zero,
                      .whole_stages = 3,
                      .gradient_norm = norm,
                      .share_loss = true});
}

TEST_CASE(
    "A decoder has the same bits on 1, 2 and 4 tensor-parallel ranks, with all other features",
    "[exec]") {
  // Every pair of model, schedule, number of tensor-parallel ranks and sequence parallelism occurs.
  int trained = 0;
  for (const auto& [name, shape] : test::small_transformers())
    for (const auto& schedule : {make("1f1b", 3, 4), make("zbv", 2, 4), make("dualpipe", 2, 8)})
      for (const auto& [shards, replicas] : {std::pair{2, 2}, {4, 1}}) {
        const Tokens tokens = trained++ % 4 % 3 == 0 ? Tokens::Whole : Tokens::Cut;
        const test::Sizes sizes{schedule, replicas, shards};
        INFO(name << ", " << to_string(sizes) << (tokens == Tokens::Cut ? ", tokens cut" : ""));
        check_equals_serial(program_of(sizes, replicas > 1 ? 1 : 0, false, shape.config.tied),
                            partition_for(schedule), small_setup_of(shape, 4, tokens),
                            sizes.options(), /*steps=*/2);
      }
  CHECK(trained == 18);
}

TEST_CASE("Mixtures of experts have the same bits as well", "[exec]") {
  const auto v = make("zbv", 2, 4);
  for (const auto& [shape, schedule, replicas, shards, tokens] :
       {std::tuple{test::small_mixture(), make("1f1b", 3, 4), 2, 2, Tokens::Cut},
        {test::small_mixture(), make("dualpipe", 2, 8), 2, 2, Tokens::Whole},
        {test::small_mixture(), v, 1, 4, Tokens::Whole},
        {test::small_biased_mixture(), v, 1, 4, Tokens::Cut}}) {
    const test::Sizes sizes{schedule, replicas, shards};
    INFO(to_string(sizes));
    check_equals_serial(program_of(sizes, replicas > 1 ? 1 : 0, false, shape.config.tied),
                        partition_for(schedule), small_setup_of(shape, 4, tokens), sizes.options(),
                        /*steps=*/2);
  }
}

/// Returns the parameters after two steps on one rank that sums in four groups. Uses SGD, because
/// the gradient of a key's bias consists of rounding errors, and AdamW would turn them into full
/// steps.
std::vector<at::Tensor> trained_serially(const std::vector<LayerSpec>& layers) {
  auto setup = test::small_setup();
  setup.optimizer = {.kind = plan::Optimizer::Sgd, .learning_rate = 0.1};
  setup.layers = layers;
  setup.tensor_groups = 4;
  SerialTrainer serial(setup, 4);
  for (int step = 0; step < 2; ++step)
    serial.step(step);
  return serial.parameters();
}

void check_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t p = 0; p < a.size(); ++p) {
    INFO("parameter " << p << " of " << a[p].sizes());
    CHECK(at::allclose(a[p], b[p], /*rtol=*/1e-4, /*atol=*/1e-5));
  }
}

TEST_CASE("Sequence parallelism trains with the same bits", "[exec]") {
  for (const auto& [name, shape] : test::all_small_transformers()) {
    INFO(name);
    check_close(trained_serially(engine::transformer_layers(shape, Tokens::Cut)),
                trained_serially(engine::transformer_layers(shape)));
  }
}

TEST_CASE("The GPT's sequence-parallel ranks have the same bits for any number of ranks",
          "[exec]") {
  const plan::GptShape shape{
      .blocks = 4, .hidden = 20, .heads = 4, .sequence = 8, .vocabulary = 37};
  check_close(trained_serially(engine::gpt_layers(shape, Tokens::Cut)),
              trained_serially(engine::gpt_layers(shape)));
  auto setup = test::sharded_setup(4);
  setup.layers = engine::gpt_layers(shape, Tokens::Cut);
  for (const auto& schedule : {make("1f1b", 2, 4), make("zbv", 2, 4)})
    for (const int shards : {1, 2, 4}) {
      const test::Sizes sizes{schedule, 1, shards};
      INFO(to_string(sizes));
      check_equals_serial(program_of(sizes, 0), partition_for(schedule), setup, sizes.options());
    }
}

TEST_CASE("Tokens that cannot be divided equally among ranks are rejected", "[exec]") {
  auto shape = test::small_llama();
  shape.sequence = 7;
  CHECK(test::error_of([&] {
          build_layer(engine::transformer_layers(shape, Tokens::Cut), 1, 0,
                      {.count = 2, .groups = 2});
        }) ==
        "layer layer0: pipeline.sequence_parallel: 7 tokens cannot be divided equally into 2 "
        "parts");
}

/// Returns a setup as a plan has it: 16 bits, with gradients accumulated in 32.
TrainingSetup mixed_setup(const plan::TransformerShape& shape) {
  auto setup = small_setup_of(shape, 2, Tokens::Cut);
  setup.precision = at::kBFloat16;
  setup.optimizer.fp32_gradients = true;
  return setup;
}

TEST_CASE("Gradient sums in float32 have the same bits as well", "[exec]") {
  int trained = 0;
  for (const auto& [name, shape] : test::small_transformers())
    for (const auto& schedule : {make("zbv", 2, 4), make("dualpipe", 2, 8)}) {
      const int zero = trained++ % 4 % 3 == 0 ? 0 : 1;  // each value with each schedule
      const test::Sizes sizes{schedule, 2, 2};
      auto setup = mixed_setup(shape);
      setup.clip_norm = 0.5;
      INFO(name << ", " << to_string(sizes) << ", ZeRO " << zero);
      check_equals_serial(program_of(sizes, zero, /*norm=*/true, shape.config.tied),
                          partition_for(schedule), setup, sizes.options(), /*steps=*/2);
    }
}

TEST_CASE("Gradient sums over replicas for each microbatch have the same bits as well", "[exec]") {
  for (const auto& schedule : {make("1f1b", 2, 4), make("zbv", 2, 4)})
    for (const int zero : {2, 3}) {
      const test::Sizes sizes{schedule, 2, 2};
      INFO(to_string(sizes) << ", ZeRO " << zero);
      check_equals_serial(program_of(sizes, zero), partition_for(schedule),
                          mixed_setup(test::small_mixture()), sizes.options(), /*steps=*/2);
    }
}

/// A layer whose weight's gradient is its input.
class Times final : public Layer {
 public:
  Times() : weight_(register_parameter("weight", at::ones({1}))) {}
  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return input * weight_;
  }

 private:
  at::Tensor weight_;
};

/// A dataset of 1 and then numbers so small that a sum in bfloat16 loses them.
class OneAndLittle final : public Dataset {
 public:
  at::Tensor input(int, int microbatch) const override {
    return at::full({1}, microbatch == 0 ? 1.0 : 1.0 / 512);
  }
  at::Tensor target(int, int) const override { return at::zeros({1}); }
};

/// Returns the master copy of the weight after a step of size 1 along the negative gradient.
double stepped(bool fp32_gradients, int zero, int replicas) {
  static const OneAndLittle data;
  const TrainingSetup setup{
      .layers = {{.name = "times", .build = [] { return std::make_shared<Times>(); }}},
      .loss = [](const Tensors& outputs, const Tensors&) { return outputs.front().sum(); },
      .data = &data,
      .optimizer = {.kind = plan::Optimizer::Sgd,
                    .learning_rate = 1,
                    .weight_decay = 0,
                    .fp32_gradients = fp32_gradients},
      .precision = at::kBFloat16};
  const test::Sizes sizes{make("1f1b", 1, 8 / replicas), replicas, 1};
  const plan::Partition one{std::vector<int>{0, 1}};
  Executor executor(program_of(sizes, zero), one, setup, sizes.options());
  executor.step(0);
  for (const LayerState& layer : executor.snapshot(1).layers)
    for (const NamedTensor& state : layer.optimizer)
      if (state.name == "weight/master" && state.value.numel() == 1)
        return state.value.item<double>();
  return 0;
}

TEST_CASE("Sums in 32 bits keep what 16 bits would lose", "[exec]") {
  constexpr double all = 1 - (1 + 7.0 / 512) / 8, lost = 1 - 1.0 / 8;
  CHECK(stepped(false, 0, 1) == lost);
  for (const auto& [zero, replicas] : {std::pair{0, 1}, {0, 2}, {1, 2}, {2, 2}, {3, 2}}) {
    CAPTURE(zero, replicas);
    CHECK(stepped(true, zero, replicas) == all);
  }
}

}  // namespace transformer_training_test
