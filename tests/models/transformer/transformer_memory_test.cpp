#include "pipewright/models/transformer/transformer_memory.hpp"

#include "pipewright/models/transformer/transformer_counts.hpp"
#include "support/catch.hpp"

namespace transformer_memory_test {

using namespace pipewright::plan;
using namespace pipewright::models;

struct Run {
  TransformerTraining training;
  Cut cut;
};

std::vector<RankMemory> memory_of(const Run& run, RecomputeMode recompute) {
  Cut cut = run.cut;
  cut.recompute = recompute;
  return transformer_memory(run.training, cut);
}

/// Korthikanti's 22B (arXiv 2205.05198, Table 3): one stage, partitioned over 8 devices.
Run run_22b() {
  Run run;
  run.training.attention = AttentionKind::Scores;
  run.training.model.layers = 48, run.training.model.hidden = 6144,
  run.training.model.heads = run.training.model.kv_heads = 64,
  run.training.model.head_channels = 96;
  run.training.model.feed_forward = 4 * 6144, run.training.model.vocabulary = 51200,
  run.training.sequence = 2048;
  run.cut.tensor = 8;
  run.cut.microbatch = run.training.batch = 4;
  return run;
}

TEST_CASE("A GPT's layer saves s b h (10 + 24/t + 5 a s / (h t)) bytes", "[plan][transformer]") {
  const Run run = run_22b();
  const double sbh = 4.0 * 2048 * 6144;
  CHECK(memory_of(run, RecomputeMode::None).front().kept ==
        Approx(48 * sbh * (10 + 3 + 5.0 * 64 * 2048 / (6144 * 8))));
}

TEST_CASE("Sequence parallelism and selective recomputation leave 34 s b h / t",
          "[plan][transformer]") {
  Run run = run_22b();
  run.cut.sequence_parallel = true;
  CHECK(memory_of(run, RecomputeMode::Selective).front().kept ==
        Approx(48 * 4.0 * 2048 * 6144 * 34 / 8));
}

TEST_CASE("Products in 8 bits save their inputs in one byte", "[plan][transformer]") {
  Run run;
  TransformerConfig& model = run.training.model;
  model.layers = 1, model.hidden = 64, model.heads = model.kv_heads = 4, model.head_channels = 16;
  model.feed_forward = 256, model.gated = true;
  run.training.sequence = 1;
  const auto kept = [&](ProductPrecision precision, AttentionKind attention) {
    run.training.precision = precision, run.training.attention = attention;
    const LayerKept layer = layer_kept(run.training, run.cut, /*is_dense=*/true);
    return layer.all - layer.scores;
  };
  using P = ProductPrecision;
  const double half = kept(P::Half, AttentionKind::Fused);
  CHECK(half == 8 * 64 + 8 * 64 + 6 * 256);
  // Two norms' outputs and the feed-forward's inner product; a fused attention's output twice.
  CHECK(half - kept(P::Float8, AttentionKind::Fused) == 2 * 64 - 64 + 256);
  CHECK(half - kept(P::Float8, AttentionKind::Scores) == 2 * 64 + 64 + 256);
  CHECK(kept(P::Half, AttentionKind::Scores) == half);
  CHECK(kept(P::Float4, AttentionKind::Scores) < kept(P::Float8, AttentionKind::Scores));
}

TEST_CASE("Full recomputation saves each layer's input, and needs one layer at a time",
          "[plan][transformer]") {
  const Run run = run_22b();
  const double sbh = 4.0 * 2048 * 6144;
  CHECK(memory_of(run, RecomputeMode::Full).front().kept ==
        Approx(48 * 2 * sbh + sbh * (13 + 5.0 * 64 * 2048 / (6144 * 8))));
}

TEST_CASE("18 bytes of a parameter persist, and ZeRO divides twelve of them",
          "[plan][transformer]") {
  Run run = run_22b();
  const double parameters =
      (48 * layer_parameters(run.training.model) + embedding_parameters(run.training) +
       head_parameters(run.training.model)) /
      8;
  CHECK(memory_of(run, RecomputeMode::Full).front().standing == Approx(18 * parameters));
  run.cut.data = 4, run.training.batch = 16, run.cut.zero = 1;
  CHECK(memory_of(run, RecomputeMode::Full).front().standing == Approx(9 * parameters));
  run.cut.zero = 3;
  // A stage needs each layer gathered in turn: the three quarters that others hold, in two bytes
  // each.
  const double gathered = 1.5 * layer_parameters(run.training.model) / 8;  // one layer at a time
  CHECK(memory_of(run, RecomputeMode::Full).front().standing ==
        Approx(4.5 * parameters + gathered));
}

TEST_CASE("The first of four ranks holds four microbatches, the last one holds one",
          "[plan][transformer]") {
  Run run = run_22b();
  run.cut.pipeline = 4, run.training.batch = 64;
  const auto ranks = memory_of(run, RecomputeMode::None);
  REQUIRE(ranks.size() == 4);
  CHECK(ranks[0].kept == Approx(4 * ranks[3].kept));
  run.cut.chunks = 3;
  CHECK(memory_of(run, RecomputeMode::None)[0].kept == Approx(ranks[0].kept * (1 + 3.0 / 12)));
  CHECK(ranks[0].logits == 0);
  CHECK(ranks[3].logits > 0);
}

TEST_CASE("A rank of a V holds both its stages, and as many layers as these have",
          "[plan][transformer]") {
  Run run = run_22b();
  run.cut.pipeline = 4, run.training.batch = 64, run.cut.chunks = 2, run.cut.schedule = "zbv";
  const double sbh = 4.0 * 2048 * 6144, layer = sbh * (13 + 5.0 * 64 * 2048 / (6144 * 8));
  for (const RankMemory& rank : memory_of(run, RecomputeMode::None))
    CHECK(rank.kept == Approx(48 * layer));  // four microbatches of a quarter of the layers
  CHECK(memory_of(run, RecomputeMode::None)[0].logits > 0);
  run.cut.chunks = 1, run.cut.schedule = "", run.cut.stage_layers = {11, 13, 13, 11};
  const auto ranks = memory_of(run, RecomputeMode::None);
  CHECK(ranks[0].kept == Approx(4 * 11 * layer));
  CHECK(ranks[1].kept == Approx(3 * 13 * layer));
  CHECK(ranks[1].standing - ranks[2].standing == Approx(0).margin(1));
  CHECK(ranks[1].standing == Approx(18 * 13 * layer_parameters(run.training.model) / 8));
}

TEST_CASE("Experts are divided among the devices that share them", "[plan][transformer]") {
  Run run = run_22b();
  run.cut.tensor = 1, run.cut.data = 8, run.training.model.experts = 8,
  run.training.model.experts_per_token = 2;
  run.training.batch = 32;
  run.training.model.expert_feed_forward = 6144, run.cut.zero = 1;
  run.training.model.set_mixture_behind(0);
  const double whole = memory_of(run, RecomputeMode::None).front().standing;
  run.cut.expert = 8;
  const double experts = 48 * expert_parameters(run.training.model);
  CHECK(whole - memory_of(run, RecomputeMode::None).front().standing ==
        Approx(experts * (6 + 12.0 / 8) - experts / 8 * 18));
}

TEST_CASE("The peak is that of the fullest rank", "[plan][transformer]") {
  Run run = run_22b();
  run.cut.pipeline = 2, run.training.batch = 64;
  const auto ranks = memory_of(run, RecomputeMode::None);
  MachineConstants nothing;
  nothing.context_bytes = nothing.token_bytes = nothing.feed_forward_bytes = 0;
  nothing.weight_bytes = nothing.logit_bytes = nothing.head_gradient_bytes = 0;
  CHECK(peak_of(ranks, nothing) == Approx(ranks[0].standing + ranks[0].kept));
  CHECK(peak_of(ranks, {}) > peak_of(ranks, nothing));
}

}  // namespace transformer_memory_test
