#include "pipewright/plan/runs/transformer_memory.hpp"

#include "support/catch.hpp"

namespace transformer_memory_test {

using namespace pipewright::plan;

/// Korthikanti's 22B (arXiv 2205.05198, Table 3): one stage, cut by 8.
TrainingRun run_22b() {
  TrainingRun run;
  run.layers = 48, run.hidden = 6144, run.heads = run.kv_heads = 64, run.head_channels = 96;
  run.feed_forward = 4 * 6144, run.vocabulary = 51200, run.sequence = 2048;
  run.gpus = run.tensor = 8;
  run.microbatch = run.global_batch = 4;
  return run;
}

TEST_CASE("A GPT's layer keeps s b h (10 + 24/t + 5 a s / (h t)) bytes", "[plan][runs]") {
  const TrainingRun run = run_22b();
  const double sbh = 4.0 * 2048 * 6144;
  CHECK(transformer_memory(run, RunRecompute::None).front().kept ==
        Approx(48 * sbh * (10 + 3 + 5.0 * 64 * 2048 / (6144 * 8))));
}

TEST_CASE("Sequence parallelism and selective recomputation leave 34 s b h / t", "[plan][runs]") {
  TrainingRun run = run_22b();
  run.sequence_parallel = true;
  CHECK(transformer_memory(run, RunRecompute::Selective).front().kept ==
        Approx(48 * 4.0 * 2048 * 6144 * 34 / 8));
}

TEST_CASE("Full recomputation keeps each layer's input, and one layer at work", "[plan][runs]") {
  const TrainingRun run = run_22b();
  const double sbh = 4.0 * 2048 * 6144;
  CHECK(transformer_memory(run, RunRecompute::Full).front().kept ==
        Approx(48 * 2 * sbh + sbh * (13 + 5.0 * 64 * 2048 / (6144 * 8))));
}

TEST_CASE("18 bytes of a parameter stand, and ZeRO divides twelve of them", "[plan][runs]") {
  TrainingRun run = run_22b();
  const double parameters =
      (48 * run.layer_parameters() + run.embedding_parameters() + run.head_parameters()) / 8;
  CHECK(transformer_memory(run, RunRecompute::Full).front().standing == Approx(18 * parameters));
  run.data = 4, run.gpus = 32, run.global_batch = 16, run.zero = 1;
  CHECK(transformer_memory(run, RunRecompute::Full).front().standing == Approx(9 * parameters));
  run.zero = 3;
  CHECK(transformer_memory(run, RunRecompute::Full).front().standing == Approx(4.5 * parameters));
}

TEST_CASE("The first of four ranks keeps four microbatches, the last one", "[plan][runs]") {
  TrainingRun run = run_22b();
  run.pipeline = 4, run.gpus = 32, run.global_batch = 64;
  const auto ranks = transformer_memory(run, RunRecompute::None);
  REQUIRE(ranks.size() == 4);
  CHECK(ranks[0].kept == Approx(4 * ranks[3].kept));
  run.chunks = 3;
  CHECK(transformer_memory(run, RunRecompute::None)[0].kept ==
        Approx(ranks[0].kept * (1 + 3.0 / 12)));
  CHECK(ranks[0].logits == 0);
  CHECK(ranks[3].logits > 0);
}

TEST_CASE("A rank of a V holds both its stages, and as many layers as these have", "[plan][runs]") {
  TrainingRun run = run_22b();
  run.pipeline = 4, run.gpus = 32, run.global_batch = 64, run.chunks = 2, run.schedule = "zbv";
  const double sbh = 4.0 * 2048 * 6144, layer = sbh * (13 + 5.0 * 64 * 2048 / (6144 * 8));
  for (const RankMemory& rank : transformer_memory(run, RunRecompute::None))
    CHECK(rank.kept == Approx(48 * layer));  // four microbatches of a fourth of the layers
  CHECK(transformer_memory(run, RunRecompute::None)[0].logits > 0);
  run.chunks = 1, run.schedule = "", run.stage_layers = {11, 13, 13, 11};
  const auto ranks = transformer_memory(run, RunRecompute::None);
  CHECK(ranks[0].kept == Approx(4 * 11 * layer));
  CHECK(ranks[1].kept == Approx(3 * 13 * layer));
  CHECK(ranks[1].standing - ranks[2].standing == Approx(0).margin(1));
  CHECK(ranks[1].standing == Approx(18 * 13 * run.layer_parameters() / 8));
}

TEST_CASE("Experts are divided among the devices that share them", "[plan][runs]") {
  TrainingRun run = run_22b();
  run.tensor = 1, run.data = run.gpus = 8, run.experts = 8, run.experts_per_token = 2;
  run.global_batch = 32;
  run.expert_feed_forward = 6144, run.zero = 1;
  const double whole = transformer_memory(run, RunRecompute::None).front().standing;
  run.expert = 8;
  const double experts = 48 * run.expert_parameters();
  CHECK(whole - transformer_memory(run, RunRecompute::None).front().standing ==
        Approx(experts * (6 + 12.0 / 8) - experts / 8 * 18));
}

TEST_CASE("The peak is that of the fullest rank", "[plan][runs]") {
  TrainingRun run = run_22b();
  run.pipeline = 2, run.gpus = 16, run.global_batch = 64;
  const auto ranks = transformer_memory(run, RunRecompute::None);
  MachineConstants nothing;
  nothing.context_bytes = nothing.token_bytes = nothing.feed_forward_bytes = 0;
  nothing.weight_bytes = nothing.logit_bytes = nothing.head_gradient_bytes = 0;
  CHECK(peak_of(ranks, nothing) == Approx(ranks[0].standing + ranks[0].kept));
  CHECK(peak_of(ranks, {}) > peak_of(ranks, nothing));
}

}  // namespace transformer_memory_test
