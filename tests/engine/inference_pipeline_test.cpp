// A stream of batches through a forward-only pipeline, compared with serial evaluation.

#include "pipewright/engine/inference_pipeline.hpp"

#include <fmt/format.h>
#include <torch/nn.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "exec/support/equals_serial.hpp"
#include "exec/support/processes.hpp"
#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/crc32c.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace inference_pipeline_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::error_of;
using test::Ranks;
using test::same_bits;
using test::say;
namespace nn = torch::nn;

/// Layers with a norm that has running means, and dropout, which is inactive in evaluation mode.
std::vector<LayerSpec> layers() {
  const auto linear = [](int in, int out) { return [in, out] { return nn::Linear(in, out); }; };
  return {module_layer("a", linear(4, 8)),
          module_layer("norm", [] { return nn::BatchNorm1d(8); }),
          random_layer(module_layer("dropout", [] { return nn::Dropout(0.5); })),
          module_layer("b", linear(8, 8)),
          function_layer("tanh", [](const at::Tensor& x) { return x.tanh(); }),
          module_layer("c", linear(8, 3))};
}

PipelineOptions options_of(int ranks, int stages_per_rank = 1) {
  return {.topology = plan::pipe_data_topology(ranks, 1),
          .stages_per_rank = stages_per_rank,
          .partition = std::string("uniform"),
          .base_seed = 4};
}

/// Returns batches with these numbers of rows, which may differ.
std::vector<Batch> batches_with(const std::vector<int>& rows) {
  std::vector<Batch> batches;
  for (std::size_t b = 0; b < rows.size(); ++b)
    batches.push_back(
        {.inputs = {(at::arange(rows[b] * 4, at::kFloat) * 0.7 + 1.3 * static_cast<double>(b))
                        .sin()
                        .view({rows[b], 4})},
         .targets = {}});
  return batches;
}

/// Returns the outputs of one process, layer by layer.
std::vector<at::Tensor> serial(const std::vector<Batch>& batches) {
  TrainingSetup setup;
  setup.layers = layers();
  setup.base_seed = 4;
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  std::vector<std::shared_ptr<Layer>> built;
  for (int layer = 0; layer < 6; ++layer) {
    built.push_back(build_layer(setup, layer));
    built.back()->eval();
  }
  std::vector<at::Tensor> outputs;
  for (const Batch& batch : batches) {
    Tensors values = batch.inputs;
    for (const auto& layer : built)
      values = layer->forward_all(values, {.training = false});
    outputs.push_back(values.at(0));
  }
  return outputs;
}

std::vector<at::Tensor> run(InferencePipeline& pipeline, const std::vector<Batch>& batches) {
  std::vector<at::Tensor> outputs;
  const auto count = pipeline.run(batches_of(batches), [&](std::int64_t index, Tensors of_batch) {
    CHECK(index == std::ssize(outputs));
    REQUIRE(of_batch.size() == 1);
    outputs.push_back(of_batch[0]);
  });
  CHECK(count == std::ssize(batches));
  return outputs;
}

void check_same(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& expected) {
  REQUIRE(outputs.size() == expected.size());
  for (std::size_t b = 0; b < expected.size(); ++b)
    CHECK(same_bits(outputs[b], expected[b]));
}

TEST_CASE("A stream of batches gives the same as one process in evaluation mode", "[exec]") {
  const auto batches = batches_with({3, 3, 5, 1, 3, 2, 2, 4, 3});
  const auto expected = serial(batches);
  for (const int ranks : {1, 2, 3})
    for (const int per_rank : {1, 2})
      for (const int under_way : {0, 1, 4}) {
        CAPTURE(ranks, per_rank, under_way);
        InferencePipeline pipeline({layers(), options_of(ranks, per_rank)},
                                   {.under_way = under_way});
        check_same(run(pipeline, batches), expected);
        check_same(run(pipeline, {}), {});
        check_same(run(pipeline, batches), expected);
      }
}

TEST_CASE("Batches that are split into microbatches are merged again", "[exec]") {
  const auto batches = batches_with({4, 6, 2, 4});
  InferencePipeline pipeline({layers(), options_of(3)}, {.microbatches = 2});
  const auto outputs = run(pipeline, batches);
  std::vector<Batch> halves;
  for (const Batch& batch : batches)
    for (const at::Tensor& half : batch.inputs[0].chunk(2))
      halves.push_back({{half}, {}});
  const auto of_halves = serial(halves);
  std::vector<at::Tensor> expected;
  for (std::size_t b = 0; b < batches.size(); ++b)
    expected.push_back(at::cat({of_halves[2 * b], of_halves[2 * b + 1]}));
  check_same(outputs, expected);
  CHECK(error_of([&] { run(pipeline, batches_with({1})); }) != "no error");
}

/// A log of the layers that have started, in order, with a way to wait for an entry.
class Begun {
 public:
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(what);
    changed_.notify_all();
  }
  /// Returns true if the entry appears within the timeout. It never does if the pipeline drains
  /// first.
  bool comes(const std::string& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      return std::find(all_.begin(), all_.end(), what) != all_.end();
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> all_;
};

/// The last stage does not finish batch k before the first one has started batch k + 1.
TEST_CASE("The first stage works on the next batch while the last stage works on the current one",
          "[exec]") {
  Begun begun;
  std::atomic<int> met = 0;
  constexpr int count = 5;
  const auto number_of = [](const at::Tensor& x) { return static_cast<int>(x.item<float>()); };
  const std::vector<LayerSpec> watched{
      function_layer("first",
                     [&](const at::Tensor& x) {
                       begun.note(fmt::format("first {}", number_of(x)));
                       return x;
                     }),
      function_layer("last", [&](const at::Tensor& x) {
        const int batch = number_of(x);
        if (batch + 1 < count && begun.comes(fmt::format("first {}", batch + 1)))
          ++met;
        return x;
      })};
  std::vector<Batch> batches;
  for (int b = 0; b < count; ++b)
    batches.push_back({{at::full({1}, b, at::kFloat)}, {}});
  InferencePipeline pipeline({watched, options_of(2)}, {.under_way = 2});
  CHECK(run(pipeline, batches).size() == count);
  CHECK(met == count - 1);
}

TEST_CASE("As many microbatches are in flight as allowed, and no more", "[exec]") {
  for (const int under_way : {1, 2, 3}) {
    CAPTURE(under_way);
    InferencePipeline pipeline({layers(), options_of(3)}, {.under_way = under_way});
    std::atomic<int> entered = 0, came_out = 0, most = 0;
    const auto batches = batches_with(std::vector<int>(12, 2));
    BatchSource inner = batches_of(batches);
    const BatchSource counted = [&]() -> std::optional<Batch> {
      auto batch = inner();
      if (batch)
        most = std::max(most.load(), ++entered - came_out);
      return batch;
    };
    // The first output waits until the allowed number of microbatches has entered.
    pipeline.run(counted, [&](std::int64_t index, const Tensors&) {
      for (int wait = 0; index == 0 && entered < under_way && wait < 20000; ++wait)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++came_out;
    });
    CHECK(came_out == 12);
    CHECK(most == under_way);
  }
}

TEST_CASE("An exception of a layer, the source or the sink ends the run on all ranks", "[exec]") {
  std::vector<LayerSpec> failing = layers();
  failing[4] = function_layer("fails", [](const at::Tensor& x) {
    if (x.size(0) == 5)
      throw std::runtime_error("five rows");
    return x.tanh();
  });
  const auto batches = batches_with({3, 3, 5, 3});
  const auto failure = [&](InferencePipeline& pipeline, const BatchSource& source,
                           const InferencePipeline::Sink& sink) -> std::string {
    try {
      pipeline.run(source, sink);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "none";
  };
  const auto ignore = [](std::int64_t, const Tensors&) {};
  InferencePipeline pipeline({failing, options_of(3)});
  CHECK(failure(pipeline, batches_of(batches), ignore) == "rank 2, microbatch 2: five rows");
  CHECK(failure(
            pipeline, []() -> std::optional<Batch> { throw std::runtime_error("no disk"); },
            ignore) == "no disk");
  CHECK(failure(pipeline, batches_of(batches), [](std::int64_t, const Tensors&) {
          throw std::runtime_error("no room");
        }) == "no room");
  check_same(run(pipeline, batches_with({3, 3})), serial(batches_with({3, 3})));
}

TEST_CASE("Inference uses the weights of a training, directly or from a checkpoint", "[exec]") {
  PipelineOptions trained = options_of(2);
  trained.loss = [](const Tensors& outputs, const Tensors&) { return outputs.at(0).pow(2).mean(); };
  PipelineEngine engine({layers(), trained}, {.train_batch_size = 12, .microbatch_size = 3});
  const auto batches = batches_with({3, 3, 3, 3});
  engine.set_data(RepeatingLoader([&] { return batches_of(batches); }));
  for (int step = 0; step < 3; ++step)
    engine.train_batch();
  BatchSource again = batches_of(batches);
  const auto expected = engine.eval_batch(again, {.outputs = true}).value().outputs.at(0);

  const auto snapshot = engine.executor().snapshot(engine.next_step());
  InferencePipeline live({layers(), options_of(3)}), stored({layers(), options_of(3)});
  live.take_weights(snapshot);
  CHECK(same_bits(at::cat(run(live, batches)), expected));

  const test::TempFolder folder;
  CheckpointWriter writer(folder.path(), {});
  writer.save(snapshot);
  writer.wait();
  stored.restore(Checkpoint::open(folder.path() / "step_00000003"));
  CHECK(same_bits(at::cat(run(stored, batches)), expected));

  Snapshot part = snapshot;
  part.layers.pop_back();
  CHECK(error_of([&] { live.take_weights(part); }) == "layer 5 (c) is not in the snapshot");
}

TEST_CASE("Models that are not a single pipeline are rejected for inference", "[exec]") {
  const auto refusal = [&](PipelineOptions options, const InferenceOptions& how) {
    return error_of([&] { InferencePipeline({layers(), options}, how); });
  };
  PipelineOptions side_by_side = options_of(2);
  side_by_side.topology = plan::pipe_data_topology(2, 2);
  CHECK(
      refusal(side_by_side, {}) ==
      "a forward-only model supports neither data nor tensor parallelism: leave the axes data and "
      "tensor out of the topology");
  CHECK(refusal(options_of(2), {.microbatches = 0}) == "microbatches is 0, but must be at least 1");
  CHECK(refusal(options_of(2), {.under_way = -1}) ==
        "under_way is -1, but must be at least 0 (0: chosen by the pipeline)");
  CHECK(refusal(options_of(2), {.where = {.only_rank = 2}}) ==
        "this process is rank 2, but the module has 2 ranks");
}

constexpr auto over_gloo = "rank of an inference over Gloo";
const std::vector<int> rows_over_gloo{3, 3, 5, 1, 3, 2, 300, 3};

std::string line_of(const at::Tensor& output) {
  return fmt::format("{:08x}", crc32c(output.const_data_ptr(), output.nbytes()));
}

TEST_CASE(over_gloo, "[.]") {
  const auto place = test::rank_place();
  if (!place)
    return;
  try {
    Job job(place->environment, {.join_timeout = std::chrono::seconds(20)});
    InferencePipeline pipeline(
        {layers(), options_of(job.size())},
        {.where = {.transport = make_gloo_transport(job), .only_rank = job.rank()}});
    for (int run = 0; run < 2; ++run)
      say(fmt::format(
          "{} batches",
          pipeline.run(job.rank() == 0 ? batches_of(batches_with(rows_over_gloo)) : BatchSource(),
                       [](std::int64_t, const Tensors& outputs) { say(line_of(outputs.at(0))); })));
  } catch (const std::exception& error) {
    say(error.what());
  }
}

TEST_CASE("A stream of batches over Gloo gives the same as one process", "[exec]") {
  std::string lines;
  for (const at::Tensor& output : serial(batches_with(rows_over_gloo)))
    lines += line_of(output) + "\n";
  for (const int size : {2, 3}) {
    CAPTURE(size);
    Ranks ranks({.size = size, .test_case = over_gloo});
    for (int rank = 0; rank < size; ++rank) {
      const std::string once = (rank == size - 1 ? lines : "") + "8 batches\n";
      CHECK(ranks.said(rank) == once + once);
      CHECK(ranks.status(rank) == 0);
    }
  }
}

}  // namespace inference_pipeline_test
