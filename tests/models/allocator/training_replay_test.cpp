#include "pipewright/models/allocator/training_replay.hpp"

#include <cmath>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/models/transformer/transformer_memory.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "support/catch.hpp"
#include "support/reference.hpp"

namespace training_replay_test {

using namespace pipewright::plan;
using namespace pipewright::models;

constexpr double gib = 0x1p30;

struct Run {
  TransformerTraining training;
  Cut cut;
};

Run run_of(const pipewright::test::ReferenceRow& row) {
  const auto number = [&](const char* column) { return std::stoi(row.at(column)); };
  Run run;
  run.training.model = find_transformer(row.at("model")).value();
  run.training.model.layers = number("layers_used");
  if (run.training.model.is_latent())
    run.training.model.set_mixture_behind(1);
  run.training.sequence = number("seq");
  run.cut.tensor = number("tp");
  run.cut.sequence_parallel = run.cut.tensor > 1;
  run.cut.pipeline = number("pp");
  run.cut.data = number("dp");
  run.cut.expert = number("ep");
  run.cut.context = number("cp");
  run.cut.microbatch = number("mbs");
  run.cut.zero = 1;
  run.training.batch = run.cut.data * run.cut.microbatch * number("microbatches");
  return run;
}

/// Returns the maximum over all ranks.
AllocatorCounters most_of(const Run& run) {
  AllocatorCounters most;
  for (int rank = 0; rank < run.cut.pipeline; ++rank) {
    const AllocatorCounters own = fullest_replay(run.training, run.cut, rank);
    most.peak_allocated = std::max(most.peak_allocated, own.peak_allocated);
    most.peak_reserved = std::max(most.peak_reserved, own.peak_reserved);
  }
  return most;
}

double error_of(std::int64_t bytes, const std::string& measured_gib) {
  return std::abs(static_cast<double>(bytes) / gib / std::stod(measured_gib) - 1);
}

TEST_CASE("Reserved bytes of Megatron-LM on B200 are within 1.5 % on average, with nothing fitted",
          "[plan][allocator][reference]") {
  double allocated = 0, reserved = 0, worst = 0;
  std::size_t rows = 0;
  pipewright::test::for_each_row("planners/simumax_b200.csv", [&](const auto& row) {
    const AllocatorCounters most = most_of(run_of(row));
    allocated += error_of(most.peak_allocated, row.at("real_peak_alloc_GiB"));
    const double own = error_of(most.peak_reserved, row.at("real_reserved_GiB"));
    reserved += own, worst = std::max(worst, own);
    ++rows;
  });
  const auto count = static_cast<double>(rows);
  CHECK(rows > 0);
  CHECK(allocated / count < 0.006);
  CHECK(reserved / count < 0.009);
  CHECK(worst < 0.035);
}

/// A model of one small layer, all of whose tensors are multiples of 512 bytes.
Run small_run() {
  Run run;
  TransformerConfig& model = run.training.model;
  model.layers = 1, model.hidden = 1024, model.heads = model.kv_heads = 8;
  model.head_channels = 128, model.feed_forward = 4096, model.vocabulary = 32768;
  run.training.sequence = 2048;
  return run;
}

TEST_CASE("Full recomputation and a sharded optimizer state reserve less", "[plan][allocator]") {
  Run run = small_run();
  run.training.model.layers = 8;
  run.cut.data = 4, run.training.batch = 16;
  const AllocatorCounters whole = most_of(run);
  run.cut.zero = 1;
  const AllocatorCounters sharded = most_of(run);
  CHECK(sharded.peak_reserved < whole.peak_reserved);
  run.cut.recompute = RecomputeMode::Full;
  CHECK(most_of(run).peak_allocated < sharded.peak_allocated);
}

TEST_CASE("A rank holds as many microbatches as 1F1B allows, of equal size", "[plan][allocator]") {
  Run run = small_run();
  run.training.model.layers = 4, run.cut.pipeline = 4;
  const auto peak_with = [&](int microbatches) {
    run.training.batch = microbatches;
    return replay_training(run.training, run.cut, {.rank = 0}).peak_allocated;
  };
  // Input, two norms and the sum in between: 8 h; queries, keys, values and output: 8 h; up and
  // activated: 4 f; in fp32 the statistics of norms, and of scores for each head.
  const std::int64_t kept = 2048LL * (8 * 1024 + 8 * 1024 + 4 * 4096 + 8 + 4 * 8);
  CHECK(peak_with(3) - peak_with(2) == Approx(kept).epsilon(0.001));
  CHECK(peak_with(8) == peak_with(4));
}

TEST_CASE("A device needs its allocator's reserved bytes, its context and communicators",
          "[plan][allocator]") {
  Run run = small_run();
  run.training.model.layers = 8;
  run.cut.tensor = run.cut.data = 2;
  run.training.batch = 4;
  const DeviceMemory memory = replayed_memory(run.training, run.cut, 0);
  const AllocatorCounters counters = fullest_replay(run.training, run.cut, 0);
  CHECK(memory.allocated == Bytes{counters.peak_allocated});
  CHECK(memory.fragmentation() == Bytes{counters.peak_reserved - counters.peak_allocated});
  CHECK(memory.fragmentation() > Bytes{0});
  CHECK(memory.context == cuda_context);
  CHECK(memory.communicators == of_communicator * 2);  // tensor and data
  CHECK(memory.total() == Bytes{counters.peak_reserved} + memory.context + memory.communicators);
  CHECK(gpu_memory({100}, Cut{}, "why").total() == Bytes{100} + cuda_context);
  CHECK(gpu_memory({100}, Cut{}, "why").left_out == "why");
}

/// Runs with various schedules, ZeRO stages, recomputation and precisions.
std::vector<Run> drawn_runs() {
  std::vector<Run> runs;
  for (const char* const schedule : {"", "zb-h1", "zbv"})
    for (int zero = 0; zero <= 3; ++zero)
      for (const RecomputeMode recompute :
           {RecomputeMode::None, RecomputeMode::Selective, RecomputeMode::Full})
        for (const ProductPrecision precision :
             {ProductPrecision::Half, ProductPrecision::Float8}) {
          Run run = small_run();
          run.training.model.layers = 8;
          run.training.model.gated = zero % 2 == 0;
          run.training.precision = precision;
          run.cut.pipeline = run.cut.data = 2;
          run.cut.schedule = schedule;
          run.cut.chunks = run.cut.schedule == "zbv" ? 2 : 1;
          run.cut.zero = zero;
          run.cut.recompute = recompute;
          run.training.batch = 8 * run.cut.data;
          runs.push_back(run);
        }
  return runs;
}

TEST_CASE("Bytes counted without an allocator equal its allocated bytes except for rounding",
          "[plan][allocator]") {
  for (const Run& run : drawn_runs()) {
    CAPTURE(run.cut.schedule, run.cut.zero, to_string(run.cut.recompute));
    const std::vector<Bytes> ranks = allocated_by_rank(run.training, run.cut);
    REQUIRE(ranks.size() == 2);
    for (int rank = 0; rank < 2; ++rank) {
      const auto counted = ranks[static_cast<std::size_t>(rank)].value;
      const auto allocated = replay_training(run.training, run.cut, {.rank = rank}).peak_allocated;
      CHECK(counted <= allocated);
      CHECK(static_cast<double>(counted) > 0.98 * static_cast<double>(allocated));
    }
  }
}

TEST_CASE("A plan's memory bound does not exceed the bytes of its tensors", "[plan][allocator]") {
  MachineConstants none;
  none.context_bytes = none.token_bytes = none.feed_forward_bytes = none.weight_bytes = 0;
  none.logit_bytes = none.head_gradient_bytes = none.routed_token_bytes = none.latent_head_bytes =
      0;
  for (const Run& run : drawn_runs()) {
    CAPTURE(run.cut.schedule, run.cut.zero, to_string(run.cut.recompute), run.training.model.gated);
    const auto bounds = transformer_memory(run.training, run.cut);
    const std::vector<Bytes> ranks = allocated_by_rank(run.training, run.cut);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      CHECK(0.96 * peak_of({bounds[rank]}, none) <= static_cast<double>(ranks[rank].value));
  }
}

TEST_CASE("A split backward frees everything in the end", "[plan][allocator]") {
  Run run = small_run();
  run.training.model.layers = 8;
  run.cut.pipeline = 4;
  run.training.batch = 16;
  for (int rank = 0; rank < 4; ++rank) {
    const auto with = [&](const char* schedule) {
      run.cut.schedule = schedule;
      return replay_training(run.training, run.cut, {.rank = rank});
    };
    const AllocatorCounters whole = with("1f1b"), halves = with("zb-h1");
    CHECK(halves.allocated == whole.allocated);
    if (rank > 0)  // weight gradients wait
      CHECK(halves.peak_allocated > whole.peak_allocated);
  }
}

TEST_CASE("ZeRO needs less with each stage, and FSDP its shards, two layers and saved activations",
          "[plan][allocator]") {
  Run run;
  run.training.model = find_transformer("llama3-8b").value();
  run.training.sequence = 8192, run.training.batch = 16;
  run.cut.data = 8;
  run.cut.recompute = RecomputeMode::Full;
  const auto peak = [&](int zero) {
    run.cut.zero = zero;
    return static_cast<double>(allocated_by_rank(run.training, run.cut).front().value);
  };
  const double first = peak(1), second = peak(2), third = peak(3);
  CHECK(second < first);
  CHECK(third < second);
  // 8.03e9 parameters with 18 bytes each, divided by 8; two gathered units at a time, of the layers
  // with 218e6 parameters and of the head with 525e6; logits and their gradient for 8192 tokens in
  // 16 bits.
  const double shards = 8.03e9 * 18 / 8, logits = 2 * 2.0 * 8192 * 128256;
  const double units = (2 + 4) * (525e6 + 218e6);
  CHECK(third > shards + logits);
  CHECK(third < 1.1 * (shards + logits + units + 32 * 2.0 * 8192 * 4096));
}

TEST_CASE("More experts per token add as much to the bound as to the replay, gated or not",
          "[plan][allocator]") {
  for (const bool gated : {false, true}) {
    Run run = small_run();
    TransformerConfig& model = run.training.model;
    model.layers = 4, model.gated = gated;
    model.experts = 16, model.expert_feed_forward = 1024;
    model.set_mixture_behind(0);
    run.cut.pipeline = 2;
    run.training.batch = 8;
    const auto kept = [&](int experts_per_token) {
      model.experts_per_token = experts_per_token;
      return layer_kept(run.training, run.cut, /*is_dense=*/false).all;
    };
    const auto counted = [&](int experts_per_token) {
      model.experts_per_token = experts_per_token;
      return static_cast<double>(allocated_by_rank(run.training, run.cut).front().value);
    };
    // Two layers of two microbatches, and temporary tensors.
    const double more = 4 * (kept(6) - kept(2));
    CHECK(more > 0);
    CHECK(counted(6) - counted(2) > more);
    CHECK(counted(6) - counted(2) < 2 * more);
  }
}

TEST_CASE("Queries of latent attention without a rank are held whole", "[plan][allocator]") {
  Run run;
  run.training.model = find_transformer("deepseekv2").value();
  run.training.model.layers = 2;
  run.training.model.set_mixture_behind(2);
  run.training.sequence = 1024, run.training.batch = 1;
  const auto allocated = [&](int query_rank) {
    run.training.model.q_rank = query_rank;
    return static_cast<double>(allocated_by_rank(run.training, run.cut).front().value);
  };
  // 5120 channels instead of a rank of 1 to 128 heads of 128 + 64 channels, 18 bytes a parameter.
  const double more = 2.0 * 5120 * 128 * 192 * 18;
  CHECK(allocated(0) - allocated(1) == Approx(more).epsilon(0.1));
}

TEST_CASE("Trainings with an unknown stream are rejected", "[plan][allocator]") {
  Run run = small_run();
  run.training.precision = ProductPrecision::Single;
  CHECK_THROWS_AS(replay_training(run.training, run.cut, {}), InputError);
  run.training.precision = ProductPrecision::Half;
  run.training.attention = AttentionKind::Scores;
  run.cut.context = 2;
  CHECK_THROWS_AS(replay_training(run.training, run.cut, {}), InputError);
}

}  // namespace training_replay_test
