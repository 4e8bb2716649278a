// Layers that are recomputed in the backward, log that they are built, or are initialized
// differently.

#include "pipewright/engine/layer_changes.hpp"

#include <torch/nn.h>

#include <mutex>
#include <set>

#include "exec/support/engine_equals_serial.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/engine/whole_model.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace layer_changes_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::check_same_bits;
using test::error_of;
using test::SyntheticData;
namespace nn = torch::nn;

/// Counts its forwards.
struct Counted : nn::Module {
  explicit Counted(std::atomic<int>* calls)
      : linear(register_module("linear", nn::Linear(4, 4))),
        norm(register_module("norm", nn::BatchNorm1d(4))),
        counter(calls) {}
  at::Tensor forward(const at::Tensor& x) {
    ++*counter;
    return norm->forward(linear->forward(x)).tanh();
  }
  nn::Linear linear;
  nn::BatchNorm1d norm;
  std::atomic<int>* counter;
};

struct Counts {
  std::atomic<int> counted{0}, plain{0};
};

PipelineModule model(Counts& counts, int pipe, PipelineOptions options) {
  const auto counted = [&](const std::string& name) {
    return module_layer(name, [&counts] { return std::make_shared<Counted>(&counts.counted); });
  };
  const auto half = [](const at::Tensor& x) { return x.narrow(1, 0, 2); };
  const auto plain = module_layer(
      "plain", [] { return nn::Linear(4, 4); },
      [&counts](nn::Linear& layer, const at::Tensor& x) {
        ++counts.plain;
        return layer->forward(x);
      });
  options.topology = plan::pipe_data_topology(pipe, 1);
  options.partition = std::string("uniform");
  options.loss = [](const Tensors& outputs, const Tensors& targets) {
    return at::mse_loss(outputs.at(0), targets.at(0));
  };
  return {{counted("a"), plain, counted("b"), function_layer("half", half)}, options};
}

std::vector<at::Tensor> state_of(PipelineEngine& engine) {
  std::vector<at::Tensor> state;
  for (const LayerState& layer : engine.executor().snapshot(0).layers)
    for (const NamedTensor& tensor : layer.parameters)
      state.push_back(tensor.value);
  return state;
}

/// Returns parameters and running means after two steps.
std::vector<at::Tensor> trained(Counts& counts, const PipelineOptions& options,
                                const std::string& schedule = "1f1b", int pipe = 2) {
  const SyntheticData data;
  PipelineEngine engine(model(counts, pipe, options),
                        test::four_microbatches({.schedule = schedule}));
  engine.set_data(batches_of(data, 4));
  for (int step = 0; step < 2; ++step)
    engine.train_batch();
  return state_of(engine);
}

TEST_CASE("Only layers of a class are recomputed, bit-identically, including running means",
          "[exec]") {
  for (const std::string schedule : {"1f1b", "zb-h1", "gpipe"}) {
    CAPTURE(schedule);
    Counts never, some, own;
    const auto expected = trained(never, {}, schedule);
    CHECK(never.counted == 2 * 2 * 4);  // layers, steps, microbatches
    CHECK(never.plain == 2 * 4);
    check_same_bits(
        trained(some, {.checkpoint_interval = 1, .checkpointable_layers = "Counted$"}, schedule),
        expected);
    CHECK(some.counted >= 2 * never.counted);
    CHECK(some.plain == never.plain);
    // A custom function, which recomputes nothing here.
    check_same_bits(trained(own,
                            {.checkpoint_interval = 1,
                             .checkpoint = [](const CheckpointedWork& work,
                                              const Tensors& inputs) { return work.run(inputs); }},
                            schedule),
                    expected);
    CHECK(own.counted == never.counted);
  }
}

TEST_CASE("A custom function may recompute a layer: running means count it once", "[exec]") {
  Counts never, twice;
  const auto run_twice = [](const CheckpointedWork& work, const Tensors& inputs) {
    work.run(inputs);
    return work.run(inputs);
  };
  check_same_bits(trained(twice, {.checkpoint_interval = 1, .checkpoint = run_twice}),
                  trained(never, {}));
  CHECK(twice.counted == 2 * never.counted);
}

TEST_CASE("A custom recomputation function receives each layer's parameters", "[exec]") {
  std::mutex mutex;
  std::set<std::size_t> seen;
  Counts counts;
  trained(counts, {.checkpoint_interval = 1,
                   .checkpointable_layers = "plain",
                   .checkpoint = [&](const CheckpointedWork& work, const Tensors& inputs) {
                     const std::lock_guard lock(mutex);
                     seen.insert(work.parameters.size());
                     return work.run(inputs);
                   }});
  CHECK(seen == std::set<std::size_t>{2});
}

TEST_CASE("Layers that cannot be recomputed are rejected", "[exec]") {
  Counts counts;
  CHECK(error_of([&] { model(counts, 2, {.checkpointable_layers = "Counted"}); }) ==
        "checkpoint_interval is 0, but checkpointable_layers and a checkpoint function recompute "
        "layers one by one: set it to 1");
  CHECK(error_of([&] {
          model(counts, 2, {.checkpoint_interval = 1, .checkpointable_layers = "Block"});
        }) == "checkpointable_layers:Block matches no layer (possible: a, plain, b or half)");
  CHECK(error_of([] {
          checkpointed(random_layer(module_layer("drop", [] { return nn::Dropout(0.1); })));
        }) ==
        "layer drop is random: it cannot be recomputed alone, because its generator has advanced; "
        "leave it out, or use only checkpoint_interval");
}

LayerSpec linear(const std::string& name) {
  return module_layer(name, [] { return nn::Linear(4, 4); });
}

TEST_CASE("Building a layer is logged with its name and class", "[exec]") {
  std::vector<std::string> built;
  const auto log = [&](const std::string& what) { built.push_back(what); };
  build_layer({logged(linear("a"), log)}, 0, 0);
  build_layer({logged(function_layer("t", [](const at::Tensor& x) { return x; }), log)}, 0, 0);
  CHECK(built == std::vector<std::string>{"a (torch::nn::LinearImpl)", "t"});
}

PipelineModule seeded(PipelineOptions options, int pipe = 1) {
  options.topology = plan::pipe_data_topology(pipe, 2);
  options.loss = [](const Tensors& outputs, const Tensors&) { return outputs.at(0).mean(); };
  return {{TiedLayerSpec{"key", "weight", linear("a")}, linear("b"),
           TiedLayerSpec{"key", "weight", linear("c")}},
          options};
}

TEST_CASE("Without a seed per layer, weights equal those of a sequentially built model", "[exec]") {
  torch::manual_seed(7);
  const nn::Linear a(4, 4), b(4, 4), c(4, 4);
  const std::vector<at::Tensor> expected{a->weight, a->bias,   b->weight,
                                         b->bias,   a->weight, c->bias};
  const PipelineOptions options{.base_seed = 7, .seed_layers = false};
  check_same_bits(WholeModel(seeded(options)).parameters(), expected);
  for (const int pipe : {1, 3}) {
    PipelineEngine engine(seeded(options, pipe), {.train_batch_size = 2});
    check_same_bits(engine.executor().parameters(), expected);
  }
  CHECK_FALSE(
      test::same_bits(WholeModel(seeded({.base_seed = 7})).parameters().front(), a->weight));
}

TEST_CASE("One sequentially seeded list of layers serves several seeds", "[exec]") {
  const auto layers = seeded_in_a_row({linear("a"), linear("b")});
  const auto weight = [&](int seed) {
    return build_layer(layers, 1, seed)->parameters().front().clone();
  };
  const at::Tensor first = weight(7), other = weight(8);
  CHECK_FALSE(test::same_bits(first, other));
  CHECK(test::same_bits(weight(7), first));
}

TEST_CASE("A custom function seeds each layer", "[exec]") {
  const PipelineOptions options{.base_seed = 7, .seed = [](int base_seed, int layer) {
                                  torch::manual_seed(static_cast<std::uint64_t>(base_seed + layer));
                                }};
  torch::manual_seed(8);
  const nn::Linear b(4, 4);
  check_same_bits({WholeModel(seeded(options)).parameters().at(2)}, {b->weight});
}

}  // namespace layer_changes_test
