// The trainings of the CPU tests on GPUs: all ranks are threads of this process, on all GPUs of the
// machine.

#include <fmt/format.h>

#include <mutex>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"
#include "exec/support/sharded_gpt.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/skip.hpp"

namespace cuda_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::make;
using test::partition_for;
using test::schedules;
using test::small_setup;

void need_gpu() {
  if (gpus().names.empty())
    test::skip("no GPU: " + gpus().why_none);
}

void check_equals_serial(const plan::Schedule& s, const TrainingSetup& setup,
                         ExecutorOptions options = {}, bool partitioned = false,
                         const plan::LoweringOptions& lowering = {}) {
  INFO(plan::to_string(s));
  options.devices = on_gpus(static_cast<int>(s.ranks.size()) * options.replicas, partitioned);
  test::check_equals_serial(plan::lower(s, lowering), partition_for(s), setup, options);
}

TEST_CASE("On a GPU each schedule trains with the bits of serial training there", "[cuda]") {
  need_gpu();
  for (const auto& s : schedules())
    check_equals_serial(s, small_setup());
}

TEST_CASE(
    "On a GPU replicas, tensor parallelism, clipping, scaling and recomputation change no bit",
    "[cuda]") {
  need_gpu();
  auto setup = small_setup();
  setup.clip_norm = 0.5;
  for (const auto& s : schedules())
    check_equals_serial(
        s, setup, {.replicas = 2}, false,
        {.replicas = 2, .recompute = plan::RecomputeMode::Full, .zero = 1, .gradient_norm = true});
  setup = small_setup();
  setup.precision = at::kBFloat16;
  setup.loss_scaling = {.scale = 1024, .dynamic = true};
  check_equals_serial(make("zb-h1", 3, 4), setup, {}, false, {.gradient_norm = true});
}

TEST_CASE(
    "Tensor-parallel ranks on one GPU wait for each other in their backwards without deadlock",
    "[cuda]") {
  need_gpu();
  for (const auto& s : {make("1f1b", 2, 4), make("zb-h1", 2, 4)}) {
    const test::Sizes sizes{s, /*replicas=*/1, /*shards=*/2};
    ExecutorOptions options = sizes.options();
    options.devices.assign(4, on_gpus(1).front());
    test::check_equals_serial(plan::lower(s, {.share_loss = true}), partition_for(s),
                              test::sharded_setup(2), options);
  }
}

TEST_CASE("Ranks that share a GPU may each have their own multiprocessors", "[cuda]") {
  need_gpu();
  for (const auto& s : {make("1f1b", 4, 8), make("zbv", 2, 4)})
    check_equals_serial(s, small_setup(), {}, /*partitioned=*/true);
}

TEST_CASE("Replayed as CUDA graphs, schedules train with the same bits", "[cuda]") {
  need_gpu();
  for (const auto& s : schedules())
    check_equals_serial(s, small_setup(), {.cuda_graphs = true});
  check_equals_serial(make("zbv", 2, 4), small_setup(), {.cuda_graphs = true},
                      /*partitioned=*/true);
  auto setup = small_setup();
  setup.clip_norm = 0.5;
  setup.precision = at::kBFloat16;
  check_equals_serial(
      make("dualpipev", 2, 8), setup, {.cuda_graphs = true, .replicas = 2}, false,
      {.replicas = 2, .recompute = plan::RecomputeMode::Full, .zero = 1, .gradient_norm = true});
}

TEST_CASE("Work that waits for the GPU cannot be captured, and the error says so", "[cuda]") {
  need_gpu();
  struct Waits final : Layer {
    at::Tensor forward(const at::Tensor& input, const CallContext&) override {
      return input * input.sum().item<double>();
    }
  };
  auto setup = small_setup();
  setup.layers[2].build = [] { return std::make_shared<Waits>(); };
  const auto s = make("1f1b", 2, 4);
  Executor executor(plan::lower(s), partition_for(s), setup,
                    {.cuda_graphs = true, .devices = on_gpus(2)});
  executor.step(0);
  std::string why;
  try {
    executor.step(1);
  } catch (const std::exception& error) {
    why = error.what();
  }
  CHECK(why.find("training.cuda_graphs: this work cannot be captured") != std::string::npos);
}

TEST_CASE("Memory that graphs retain on a GPU is counted and stays constant", "[cuda]") {
  need_gpu();
  const auto s = make("gpipe", 2, 4);
  std::vector<std::int64_t> peaks;
  for (const bool graphs : {false, true}) {
    release_product_workspaces();  // other accounts may have been charged for them
    std::mutex mutex;
    std::int64_t peak = 0;
    Executor executor(plan::lower(s), partition_for(s), small_setup(),
                      {.observer =
                           [&](const InstructionRecord& record) {
                             const std::lock_guard lock(mutex);
                             if (record.rank == 0)
                               peak = std::max(peak, record.peak.value);
                           },
                       .cuda_graphs = graphs,
                       .devices = on_gpus(2)});
    for (int step = 0; step < 4; ++step) {
      peak = 0;
      executor.step(step);
      if (step > 1)
        peaks.push_back(peak);
    }
  }
  CHECK(peaks[0] == peaks[1]);
  CHECK(peaks[2] == peaks[3]);
  CHECK(peaks[2] >= peaks[0]);
}

TEST_CASE("A GPU's ranks report when their actions ran and what memory they held", "[cuda]") {
  need_gpu();
  const auto s = make("1f1b", 2, 4);
  std::mutex mutex;
  std::vector<InstructionRecord> records;
  Executor executor(plan::lower(s), partition_for(s), small_setup(),
                    {.observer =
                         [&](const InstructionRecord& record) {
                           const std::lock_guard lock(mutex);
                           records.push_back(record);
                         },
                     .devices = on_gpus(2)});
  executor.step(0);
  records.clear();
  const auto result = executor.step(1).value();
  for (const InstructionRecord& record : records) {
    INFO(to_string(record.instruction));
    CHECK(record.start <= record.end);
    CHECK(record.end.value <= result.duration.value * 1.01);
    CHECK(record.peak >= record.held_after);
    CHECK(record.held_before.value > 0);
  }
}

TEST_CASE("Twenty steps on a GPU hold no more memory than two", "[cuda]") {
  need_gpu();
  const auto s = make("zb-h1", 3, 4);
  std::vector<std::vector<std::int64_t>> held(3);  // at the start of each step
  std::vector<int> heard(3, -1);                   // the step of the last record
  int now = 0;
  Executor executor(plan::lower(s), partition_for(s), small_setup(),
                    {.observer =
                         [&](const InstructionRecord& record) {
                           const auto rank = static_cast<std::size_t>(record.rank);
                           if (std::exchange(heard[rank], now) != now)
                             held[rank].push_back(record.held_before.value);
                         },
                     .devices = on_gpus(3)});
  for (; now < 20; ++now)
    executor.step(now);
  // cuBLAS workspaces of a stream are allocated in the first step and stay.
  for (const auto& values : held) {
    CHECK(values.front() <= values.at(1));
    CHECK(std::vector(values.begin() + 1, values.end()) ==
          std::vector<std::int64_t>(19, values.at(1)));
  }
}

TEST_CASE("A checkpoint from a GPU can be resumed on the CPU", "[cuda]") {
  need_gpu();
  const auto s = make("1f1b", 2, 4);
  Executor on_gpu(plan::lower(s), partition_for(s), small_setup(), {.devices = on_gpus(2)});
  on_gpu.step(0);
  for (const LayerState& layer : on_gpu.snapshot(1).layers)
    for (const NamedTensor& parameter : layer.parameters)
      CHECK(parameter.value.is_cpu());
}

}  // namespace cuda_test
