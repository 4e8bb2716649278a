// Tensor-parallel ranks as threads: training has the bits of serial training, and failures end all
// ranks.

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "exec/support/sharded_gpt.hpp"
#include "exec/support/stall_reports.hpp"
#include "pipewright/engine/skips.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/temp_folder.hpp"

namespace tensor_parallel_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::check_equals_serial;
using test::make;
using test::partition_for;
using test::same_bits;
using test::sharded_setup;
using test::Sizes;

plan::Program program_of(const Sizes& sizes, bool zero = false, bool norm = false) {
  return plan::lower(sizes.schedule, {.replicas = sizes.replicas,
                                      .zero = zero ? 1 : 0,
                                      .gradient_norm = norm,
                                      .share_loss = true});
}

TEST_CASE("Tensor-parallel ranks have the bits of serial training with the same groups", "[exec]") {
  for (const int groups : {2, 4})
    for (const int shards : {1, 2, 4}) {
      if (groups % shards != 0)
        continue;
      const Sizes sizes{make("1f1b", 1, 2), 1, shards};
      INFO(fmt::format("{} shards, {} groups", shards, groups));
      check_equals_serial(program_of(sizes), partition_for(sizes.schedule), sharded_setup(groups),
                          sizes.options());
    }
}

TEST_CASE("A skip connection bypasses partitioned layers", "[exec]") {
  auto setup = sharded_setup(2);
  const std::vector<LayerSpec> gpt = std::exchange(setup.layers, {});
  std::vector<ModelItem> items(gpt.begin(), gpt.end());
  const auto add = [](const at::Tensor& value, const at::Tensor& skip) { return value + skip; };
  items.insert(items.end() - 1, PopSkip{"first", add});
  items.insert(items.begin() + 1, PushSkip{"first"});
  setup.layers = with_skips(items);
  const plan::Partition halves{{0, 4, static_cast<int>(setup.layers.size())}};
  const Sizes sizes{make("1f1b", 2, 2), 1, 2};
  check_equals_serial(program_of(sizes), halves, setup, sizes.options());
}

TEST_CASE(
    "All kinds of schedule, replicas, ZeRO, clipping and tensor parallelism have the same bits",
    "[exec]") {
  int trained = 0;
  for (const auto& schedule : test::schedules())
    for (const int replicas : {1, 2})
      for (const bool zero : {false, true}) {
        if (zero && replicas == 1)
          continue;
        const Sizes sizes{schedule, replicas, 2};
        auto setup = sharded_setup(2);
        setup.clip_norm = zero ? 0.5 : 0;
        INFO(to_string(sizes));
        check_equals_serial(program_of(sizes, zero, zero), partition_for(schedule), setup,
                            sizes.options(), /*steps=*/2);
        ++trained;
      }
  CHECK(trained >= 20);
}

TEST_CASE("2 x 2 x 2 ranks as eight threads have the bits of serial training in any order of axes",
          "[exec]") {
  std::vector<std::string> axes{"data", "pipe", "tensor"};
  int orders = 0;
  do {
    const Sizes sizes{make("1f1b", 2, 2), 2, 2, axes};
    auto setup = sharded_setup(2);
    setup.clip_norm = 0.3;
    INFO(fmt::format("{}", fmt::join(axes, ", ")));
    check_equals_serial(program_of(sizes, true, true), partition_for(sizes.schedule), setup,
                        sizes.options());
    ++orders;
  } while (std::next_permutation(axes.begin(), axes.end()));
  CHECK(orders == 6);
}

TEST_CASE("Tensor parallelism in bfloat16 with a loss scale has the bits of serial training",
          "[exec]") {
  const Sizes sizes{make("1f1b", 2, 2), 1, 2};
  auto setup = sharded_setup(2);
  setup.precision = at::kBFloat16;
  setup.loss_scaling = {.scale = 1024, .dynamic = true};
  check_equals_serial(program_of(sizes, false, true), partition_for(sizes.schedule), setup,
                      sizes.options());
}

/// Returns its input after calling a function that knows the tensor-parallel rank.
class Probe final : public Layer {
 public:
  using Work =
      std::function<at::Tensor(const at::Tensor&, const CallContext&, const TensorParallelPlace&)>;
  Probe(Work work, const TensorParallelPlace& place) : work_(std::move(work)), place_(place) {}
  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    return work_(input, context, place_);
  }

 private:
  Work work_;
  TensorParallelPlace place_;
};

/// Returns the GPT with a probe as its third layer.
TrainingSetup probed_setup(const Probe::Work& work) {
  auto setup = sharded_setup(2);
  setup.layers[2] = {
      .name = "probe",
      .build = [work] { return std::make_shared<Probe>(work, TensorParallelPlace{}); },
      .build_shard =
          [work](const TensorParallelPlace& place) {
            return std::make_shared<Probe>(work, place);
          }};
  return setup;
}

TEST_CASE("A tensor-parallel rank that fails within an action ends the others, which wait for it",
          "[exec]") {
  const Sizes sizes{make("1f1b", 3, 4), 1, 2};
  const auto setup = probed_setup(
      [](const at::Tensor& x, const CallContext& call, const TensorParallelPlace& place) {
        if (place.index == 1 && call.microbatch == 2)
          throw std::runtime_error("out of memory");
        return x;
      });
  Executor executor(program_of(sizes), partition_for(sizes.schedule), setup, sizes.options());
  std::string failure;
  try {
    executor.step(0);
  } catch (const RankFailure& error) {
    failure = error.what();
  }
  CHECK(failure == "rank 3, action 1F2, step 0: out of memory");
}

TEST_CASE("Gradients that are not finite on one tensor-parallel rank skip the step on all",
          "[exec]") {
  const Sizes sizes{make("1f1b", 2, 2), 1, 2};
  std::atomic<bool> spoils{true};
  auto setup =
      probed_setup([&](const at::Tensor& x, const CallContext&, const TensorParallelPlace& place) {
        if (place.index == 1 && x.requires_grad() && spoils)
          x.register_hook([](const at::Tensor& gradient) {
            return gradient * std::numeric_limits<double>::infinity();
          });
        return x;
      });
  setup.clip_norm = 1;
  Executor executor(program_of(sizes, false, true), partition_for(sizes.schedule), setup,
                    sizes.options());
  std::vector<at::Tensor> before;
  for (const at::Tensor& parameter : executor.parameters())
    before.push_back(parameter.clone());
  CHECK(executor.step(0).value().skipped);
  const auto after = executor.parameters();
  for (std::size_t p = 0; p < before.size(); ++p)
    CHECK(same_bits(after[p], before[p]));
  spoils = false;
  CHECK_FALSE(executor.step(1).value().skipped);
}

TEST_CASE("A stall names the late tensor-parallel rank, and the ranks waiting in which collective",
          "[exec]") {
  test::StallReports stall;
  const Sizes sizes{make("gpipe", 1, 2), 1, 2};
  const auto setup = probed_setup(
      [&](const at::Tensor& x, const CallContext& call, const TensorParallelPlace& place) {
        if (place.index == 1 && call.microbatch == 1)
          stall.hang();
        return x;
      });
  Executor executor(program_of(sizes), partition_for(sizes.schedule), setup,
                    stall.watched(sizes.options()));
  CHECK(executor.step(0).has_value());
  REQUIRE(stall.reports.size() == 1);
  CHECK(stall.reports[0].starts_with(
      "rank 1 has been at 0F1 for 0.3 s and does not end; rank 0 waits in "
      "collective "));
  CHECK(stall.reports[0].ends_with(" of the shards in 0F1 for it"));
}

TEST_CASE("A record contains the time of an action in tensor-parallel collectives", "[exec]") {
  for (const int shards : {1, 2}) {
    const Sizes sizes{make("1f1b", 2, 2), 1, shards};
    auto options = sizes.options();
    std::mutex mutex;
    std::vector<InstructionRecord> records;
    options.observer = [&](const InstructionRecord& record) {
      const std::lock_guard lock(mutex);
      records.push_back(record);
    };
    Executor executor(program_of(sizes), partition_for(sizes.schedule), sharded_setup(2), options);
    executor.step(0);
    int with_collectives = 0;
    for (const InstructionRecord& record : records) {
      CHECK(record.shards <= record.end - record.start);
      CHECK((record.shards > plan::Seconds{}) ==
            (shards > 1 && (record.instruction.kind == plan::InstructionKind::Forward ||
                            record.instruction.kind == plan::InstructionKind::Backward)));
      with_collectives += record.shards > plan::Seconds{} ? 1 : 0;
    }
    CHECK(with_collectives == (shards > 1 ? 16 : 0));
  }
}

/// The number of elements of parameters, and the bytes that each rank holds before its first step.
struct Held {
  std::int64_t uncut = 0, cut = 0;
  std::map<int, plan::Bytes> by_rank;
};

Held held_by(int shards) {
  const Sizes sizes{make("1f1b", 1, 1), 1, shards};
  Held held;
  std::mutex mutex;
  auto options = sizes.options();
  options.observer = [&](const InstructionRecord& record) {
    const std::lock_guard lock(mutex);
    held.by_rank.try_emplace(record.rank, record.held_before);
  };
  Executor executor(program_of(sizes), partition_for(sizes.schedule), sharded_setup(4), options);
  for (const LayerState& layer : executor.snapshot(0).layers)
    for (const NamedTensor& parameter : layer.parameters)
      (parameter.part.count > 1 ? held.cut : held.uncut) += parameter.value.numel();
  executor.step(0);
  return held;
}

TEST_CASE("Each tensor-parallel rank holds its part of partitioned parameters, and all others",
          "[exec]") {
  const Held one = held_by(1);
  for (const int shards : {2, 4}) {
    const Held parts = held_by(shards);
    CHECK(parts.uncut + parts.cut == one.uncut);  // with one rank, everything is whole
    CHECK(parts.cut > 10 * parts.uncut);
    CHECK(parts.by_rank.size() == static_cast<std::size_t>(shards));
    // Each parameter has its gradient and two moments.
    const double expected =
        4 * 4 * (static_cast<double>(parts.uncut) + static_cast<double>(parts.cut) / shards);
    for (const auto& [rank, bytes] : parts.by_rank)
      CHECK(static_cast<double>(bytes.value) == Approx(expected).epsilon(0.03));
  }
}

TEST_CASE("Training that tensor-parallel ranks do not support is rejected before it starts",
          "[exec]") {
  const Sizes sizes{make("1f1b", 1, 1), 1, 2};
  const auto refusal = [&](const TrainingSetup& setup, ExecutorOptions options) {
    return test::error_of(
        [&] { Executor(program_of(sizes), partition_for(sizes.schedule), setup, options); });
  };
  CHECK(refusal(sharded_setup(3), sizes.options()) ==
        "training.tensor_groups is 3, but must be a multiple of the 2 tensor-parallel ranks");
  auto options = sizes.options();
  options.cuda_graphs = true;
  CHECK(refusal(sharded_setup(2), options)
            .starts_with("training.cuda_graphs: tensor-parallel ranks communicate"));
  options = sizes.options();
  options.shards = 0;
  CHECK(refusal(sharded_setup(2), options) ==
        "0 tensor-parallel ranks were requested, but at least 1 is needed");
  auto setup = sharded_setup(2);
  setup.layers[1].random = true;
  CHECK(refusal(setup, sizes.options()).starts_with("layer block0 is random, and only one random"));
}

/// Trains with these sizes, resuming from the checkpoint `before` if there is one, and saves the
/// checkpoint `after`.
std::vector<at::Tensor> trained_on(const Sizes& sizes, bool zero, int from, int to,
                                   const std::filesystem::path& before,
                                   const std::filesystem::path& after) {
  auto setup = sharded_setup(4);
  setup.gradient_groups = 2;
  Executor executor(program_of(sizes, zero), partition_for(sizes.schedule), setup, sizes.options());
  if (!before.empty())
    executor.restore(Checkpoint::open(before / fmt::format("step_{:08}", from)));
  for (int step = from; step < to; ++step)
    executor.step(step);
  CheckpointWriter writer(after, {});
  writer.save(executor.snapshot(to));
  writer.wait();
  CHECK(writer.failure().value_or("") == "");
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : executor.parameters())
    parameters.push_back(parameter.clone());
  return parameters;
}

TEST_CASE("A checkpoint of tensor-parallel ranks resumes under any other sizes with the same bits",
          "[exec]") {
  const Sizes eight{make("1f1b", 2, 2), 2, 2}, one{make("1f1b", 1, 4)},
      wide{make("1f1b", 2, 4), 1, 4};
  const test::TempFolder a, b, c, d;
  for (const bool zero : {true, false}) {
    const auto at = [&](const test::TempFolder& folder) {
      return folder.path() / (zero ? "zero" : "whole");
    };
    trained_on(eight, zero, 0, 2, {}, at(a));
    trained_on(one, false, 2, 3, at(a), at(b));
    const auto found = trained_on(wide, false, 3, 5, at(b), at(c));
    trained_on(wide, false, 5, 6, at(c), at(c));
    const auto last = trained_on(eight, zero, 6, 7, at(c), at(c));
    const auto expected = trained_on(one, false, 0, 5, {}, at(d));
    REQUIRE(found.size() == expected.size());
    for (std::size_t p = 0; p < found.size(); ++p)
      CHECK(same_bits(found[p], expected[p]));
    const auto later = trained_on(one, false, 5, 7, at(d), at(d));
    for (std::size_t p = 0; p < last.size(); ++p)
      CHECK(same_bits(last[p], later[p]));
  }
}

}  // namespace tensor_parallel_test
