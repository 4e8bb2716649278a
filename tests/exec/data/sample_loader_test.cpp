#include "pipewright/exec/data/sample_loader.hpp"

#include <ATen/ATen.h>
#include <torch/nn.h>

#include <map>
#include <mutex>
#include <set>

#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace sample_loader_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::error_of;

/// Returns samples with input n and target 10 n.
Samples numbered(std::int64_t count) {
  const at::Tensor numbers = at::arange(count, at::kFloat);
  return samples_of({{numbers}, {numbers * 10}});
}

using Numbers = std::vector<int>;

/// Returns the samples of steps [first, end), in order.
Numbers read(const Dataset& data, int first, int end, int microbatches) {
  Numbers all;
  for (int step = first; step < end; ++step)
    for (int m = 0; m < microbatches; ++m) {
      const at::Tensor inputs = data.inputs(step, m).at(0), targets = data.targets(step, m).at(0);
      for (std::int64_t s = 0; s < inputs.numel(); ++s) {
        all.push_back(inputs[s].item<int>());
        CHECK(targets[s].item<int>() == 10 * all.back());
      }
    }
  return all;
}

TEST_CASE("Samples are read in order, and the last ones are dropped or padded", "[exec][data]") {
  LoaderOptions options{.train_batch_size = 4, .microbatch_size = 2, .shuffle = false};
  CHECK(steps_per_epoch(10, options) == 2);
  CHECK(read(*load_samples(numbered(10), options), 0, 3, 2) ==
        Numbers{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3});
  options.last = LastBatch::Pad;
  CHECK(steps_per_epoch(10, options) == 3);
  CHECK(read(*load_samples(numbered(10), options), 0, 4, 2) ==
        Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 0, 1, 2, 3});
  CHECK(steps_per_epoch(8, options) == 2);
}

TEST_CASE("Each epoch has all samples once, in its own order drawn from the seed", "[exec][data]") {
  const auto epoch = [](int number, int seed) {
    const auto data =
        load_samples(numbered(12), {.train_batch_size = 4, .microbatch_size = 2, .seed = seed});
    return read(*data, 3 * number, 3 * number + 3, 2);
  };
  for (const int number : {0, 1}) {
    const Numbers samples = epoch(number, 5);
    CHECK(std::set<int>(samples.begin(), samples.end()).size() == 12);
    CHECK(samples == epoch(number, 5));
    CHECK(samples != epoch(number, 6));
  }
  CHECK(epoch(0, 5) != epoch(1, 5));
}

TEST_CASE("A user's sampler determines the sample at each position", "[exec][data]") {
  LoaderOptions options{.train_batch_size = 2,
                        .sampler = [](int epoch, std::int64_t place) { return 5 - place - epoch; }};
  const auto data = load_samples(numbered(6), options);
  CHECK(read(*data, 0, 3, 2) == Numbers{5, 4, 3, 2, 1, 0});
  CHECK(read(*data, 3, 4, 2) == Numbers{4, 3});
  CHECK(error_of([&] { read(*data, 5, 6, 2); }) ==
        "the sampler returned sample -1 at place 5 of epoch 1, but there are 6 samples");
}

TEST_CASE("Sizes that do not fill a batch are rejected", "[exec][data]") {
  CHECK(error_of([] { steps_per_epoch(3, {.train_batch_size = 4}); }) ==
        "3 samples are too few for a batch of 4: pad the last batch, or use a smaller batch size");
  CHECK(error_of([] { steps_per_epoch(3, {.train_batch_size = 3, .microbatch_size = 2}); }) ==
        "a batch of 3 samples does not divide into microbatches of 2");
  CHECK(error_of([] {
          samples_of({{at::ones({3})}, {at::ones({4})}});
        }) == "the data has tensors of 3 and of 4 samples");
}

TEST_CASE("An engine's ranks read only the samples of their own microbatches", "[exec][data]") {
  std::mutex mutex;
  std::multiset<std::int64_t> asked;
  const at::Tensor inputs = (at::arange(40, at::kFloat) * 0.7).sin().view({10, 4});
  const at::Tensor targets = (at::arange(20, at::kFloat) * 0.3).cos().view({10, 2});
  const Samples all = samples_of({{inputs}, {targets}});
  const Samples counted{10, [&](std::int64_t number) {
                          const std::lock_guard lock(mutex);
                          asked.insert(number);
                          return all.at(number);
                        }};
  const LoaderOptions options{.train_batch_size = 8, .microbatch_size = 2, .seed = 1};
  const auto module = [] {
    const auto linear = [](const std::string& name, int in, int out) {
      return module_layer(name, [in, out] { return torch::nn::Linear(in, out); });
    };
    return PipelineModule({linear("a", 4, 8), linear("b", 8, 2)},
                          {.topology = plan::pipe_data_topology(2, 2),
                           .loss = [](const Tensors& outputs, const Tensors& wanted) {
                             return at::mse_loss(outputs.at(0), wanted.at(0));
                           }});
  };
  PipelineEngine engine(module(), {.train_batch_size = 8, .microbatch_size = 2});
  engine.set_data(load_samples(counted, options));
  const auto data = load_samples(all, options);
  auto setup = engine.setup();
  setup.data = data.get();
  SerialTrainer serial(setup, 4, {0, 0, 1, 1});
  for (int step = 0; step < 2; ++step)
    CHECK(engine.train_batch()->loss == serial.step(step).loss);
  // Each sample of two steps is read twice: by a first stage for inputs, by a last stage for
  // targets.
  CHECK(asked.size() == 2 * 2 * 8);
  // Data comes from an iterator again.
  engine.set_data(batches_of({{inputs}, {targets}}, 2));
  CHECK(engine.train_batch());
  CHECK_FALSE(engine.train_batch());
}

}  // namespace sample_loader_test
