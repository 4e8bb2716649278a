// A hook that sees the gradients of a step and may modify them.

#include <torch/nn.h>

#include <map>
#include <mutex>

#include "exec/support/engine_equals_serial.hpp"
#include "pipewright/engine/module_layers.hpp"

namespace gradient_hook_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::check_engine_equals_serial;
using test::SyntheticData;
namespace nn = torch::nn;

/// Its first and last layer share a weight.
PipelineModule tied_model(int pipe, int data = 1) {
  const auto linear = [](const std::string& name, int in, int out) {
    return module_layer(name, [in, out] { return nn::Linear(in, out); });
  };
  const auto back = [](nn::Linear& layer, const at::Tensor& x) {
    return at::linear(x, layer->weight.t());
  };
  const auto tanh = [](const at::Tensor& input) { return input.tanh(); };
  return {{TiedLayerSpec{"table", "weight", linear("a", 4, 24)}, function_layer("t", tanh),
           linear("b", 24, 24), function_layer("u", tanh),
           TiedLayerSpec{
               "table", "weight",
               module_layer(
                   "c", [] { return nn::Linear(nn::LinearOptions(4, 24).bias(false)); }, back)},
           linear("d", 4, 2)},
          {.topology = plan::pipe_data_topology(pipe, data),
           .partition = std::string("uniform"),
           .loss = [](const Tensors& outputs, const Tensors& targets) {
             return at::mse_loss(outputs.at(0), targets.at(0));
           }}};
}

/// The gradients of each step, by rank and name.
struct Log {
  std::mutex mutex;
  std::map<std::pair<int, std::string>, at::Tensor> seen;
  int calls = 0;

  GradientHook hook() {
    return [this](const StepGradients& shown) {
      const std::lock_guard lock(mutex);
      ++calls;
      for (const NamedGradient& gradient : shown.gradients)
        seen[{shown.rank, gradient.what.layer + "." + gradient.what.name}] =
            (gradient.value / shown.loss_scale).clone();
    };
  }
  std::vector<std::string> names(int rank) const {
    std::vector<std::string> own;
    for (const auto& [key, value] : seen)
      if (key.first == rank)
        own.push_back(key.second);
    return own;
  }
};

using Names = std::vector<std::string>;

TEST_CASE("Each rank sees the reduced gradients with which serial training steps", "[exec]") {
  const SyntheticData data;
  Log pipelined, alone;
  PipelineEngine engine(tied_model(2, 2),
                        test::four_microbatches({.before_step = pipelined.hook()}));
  engine.set_data(batches_of(data, 4));
  auto setup = engine.setup();
  setup.data = &data;
  setup.before_step = alone.hook();
  SerialTrainer serial(setup, 4, test::groups_of_four(2));
  engine.train_batch();
  serial.step(0);

  CHECK(pipelined.calls == 4);
  CHECK(alone.calls == 1);
  // A tied weight has the same name on both stages, and its gradient is their sum.
  CHECK(pipelined.names(0) == Names{"a.bias", "a.weight", "b.bias", "b.weight"});
  CHECK(pipelined.names(1) == pipelined.names(0));
  CHECK(pipelined.names(2) == Names{"a.weight", "d.bias", "d.weight"});
  CHECK(pipelined.names(3) == pipelined.names(2));
  CHECK(pipelined.seen.size() == 14);
  for (const auto& [key, value] : pipelined.seen)
    CHECK(test::same_bits(value, alone.seen.at({0, key.second})));
}

/// Clamps each element, independent of its position.
void clamp(const StepGradients& shown) {
  for (const NamedGradient& gradient : shown.gradients)
    gradient.value.clamp_(-0.01 * shown.loss_scale, 0.01 * shown.loss_scale);
}

TEST_CASE("Gradients modified by the hook are clipped and used for the step", "[exec]") {
  for (const double clip : {0.0, 0.02}) {
    CAPTURE(clip);
    EngineOptions options = test::four_microbatches({.clip_norm = clip, .before_step = clamp});
    check_engine_equals_serial(tied_model(3), options);
    check_engine_equals_serial(tied_model(2, 2), options);
    options.zero = 1;
    check_engine_equals_serial(tied_model(2, 2), options);
    options.loss_scaling = {.scale = 512};
    check_engine_equals_serial(tied_model(2, 2), options);
    options.before_step = [](const StepGradients& shown) { CHECK(shown.loss_scale == 512); };
    PipelineEngine scaled(tied_model(1), options);
    const SyntheticData data;
    scaled.set_data(batches_of(data, 4));
    scaled.train_batch();
  }
  // The result differs from that without the hook.
  const SyntheticData data;
  PipelineEngine with(
      tied_model(2),
      test::four_microbatches({.before_step =
                                   [](const auto&shown) {
                                     for (const NamedGradient& gradient : shown.gradients)
                                       gradient.value.zero_();
                                   }})),
      untrained(tied_model(2), test::four_microbatches());
  for (PipelineEngine* engine : {&with, &untrained})
    engine->set_data(batches_of(data, 4));
  const auto first = untrained.executor().parameters().back().clone();
  with.train_batch();
  untrained.train_batch();
  CHECK_FALSE(test::same_bits(untrained.executor().parameters().back(), first));
  CHECK(at::allclose(with.executor().parameters().back(), first, 1e-4, 0));  // except for weight
                                                                             // decay
}

PipelineModule plain_model(int pipe, int data) {
  const auto linear = [](const std::string& name, int in, int out) {
    return module_layer(name, [in, out] { return nn::Linear(in, out); });
  };
  return {{linear("a", 4, 48), linear("b", 48, 2)},
          {.topology = plan::pipe_data_topology(pipe, data),
           .loss = [](const Tensors& outputs, const Tensors& targets) {
             return at::mse_loss(outputs.at(0), targets.at(0));
           }}};
}

TEST_CASE("Under ZeRO, a replica of a stage sees its slice and the slice's position", "[exec]") {
  for (const int zero : {1, 2, 3}) {
    CAPTURE(zero);
    const SyntheticData data;
    std::mutex mutex;
    std::map<std::string, std::map<std::int64_t, at::Tensor>> slices;
    bool all_say_where = true;
    EngineOptions options = test::four_microbatches(
        {.before_step =
             [&](const StepGradients& shown) {
               const std::lock_guard lock(mutex);
               for (const NamedGradient& gradient : shown.gradients) {
                 const auto all = c10::multiply_integers(gradient.what.sizes);
                 all_say_where =
                     all_say_where && gradient.whole == (gradient.value.numel() == all ? -1 : all);
                 slices[gradient.what.layer + "." + gradient.what.name][gradient.begin] =
                     gradient.value.flatten().clone();
               }
             },
         .zero = zero});
    PipelineEngine engine(plain_model(2, 2), options);
    engine.set_data(batches_of(data, 4));
    Log alone;
    auto setup = engine.setup();
    setup.data = &data;
    setup.before_step = alone.hook();
    SerialTrainer serial(setup, 4, test::groups_of_four(2, zero));
    engine.train_batch();
    serial.step(0);
    CHECK(all_say_where);
    CHECK(slices.size() == 4);
    CHECK(slices.at("a.weight").size() == 2);
    for (const auto& [name, parts] : slices) {
      Tensors all;
      for (const auto& [begin, part] : parts)
        all.push_back(part);
      CHECK(test::same_bits(at::cat(all), alone.seen.at({0, name}).flatten()));
    }
    options.before_step = clamp;
    check_engine_equals_serial(plain_model(2, 2), options);
  }
}

TEST_CASE("An exception of the hook is reported with its place", "[exec]") {
  const SyntheticData data;
  PipelineEngine engine(tied_model(2),
                        test::four_microbatches({.before_step = [](const auto& shown) {
                          if (shown.rank == 1)
                            throw plan::InputError("no such gradient");
                        }}));
  engine.set_data(batches_of(data, 4));
  CHECK_THROWS_WITH(engine.train_batch(), "rank 1, action 1STEP, step 0: no such gradient");
}

}  // namespace gradient_hook_test
