#include "pipewright/models/megatron/megatron_memory.hpp"

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace megatron_memory_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using Catch::Matchers::Contains;
using pipewright::test::error_of;

constexpr long long mebibyte = 1LL << 20;

/// The GPT of Megatron's tests, 12 layers of 512 on four ranks, the last of which has three layers
/// and the head.
MegatronRun small_run() {
  MegatronRun run;
  TransformerConfig& model = run.training.model;
  model.layers = 12, model.hidden = 512, model.heads = model.kv_heads = 8;
  model.head_channels = model.value_channels = 64, model.feed_forward = 2048;
  model.vocabulary = 50304, model.norm = NormKind::Layer;
  model.learned_positions = model.tied = model.dropout = true;
  run.training.sequence = 1024, run.training.batch = 32;
  run.cut.pipeline = 4, run.cut.data = 2, run.cut.microbatch = 4;
  run.rank = 3;
  run.bias = run.attention_dropout = run.deterministic = true;
  run.attention = AttentionBackend::Unfused;
  run.gpu = GpuKind::Ampere;
  run.cublas_workspace = 32 * mebibyte;
  run.expandable_segments = true;
  run.date = 20250801;
  return run;
}

constexpr long long h = 512;
/// The matrices, biases and two norms of a layer.
constexpr long long layer_size = 12 * h * h + 13 * h;
constexpr long long last_rank = 3 * layer_size + 2 * h + 50304 * h;

long long standing(const MemoryByName& held) {
  return held.of("parameters") + held.of("gradients") + held.of("fp32 weights") +
         held.of("optimizer state");
}

TEST_CASE("Each parameter takes 2 + 4 + 12 persistent bytes", "[plan][megatron]") {
  const MemoryByName held = megatron_memory(small_run()).behind_iteration;
  CHECK(held.of("parameters") == 2 * last_rank);
  CHECK(held.of("gradients") == 4 * last_rank);
  CHECK(standing(held) == 18 * last_rank);
}

TEST_CASE("The distributed optimizer partitions twelve of them over replicas and context",
          "[plan][megatron]") {
  MegatronRun run = small_run();
  run.cut.zero = 1;
  CHECK(standing(megatron_memory(run).behind_iteration) == 6 * last_rank + 12 * last_rank / 2);
  run.cut.context = 2;
  CHECK(standing(megatron_memory(run).behind_iteration) == 6 * last_rank + 12 * last_rank / 4);
}

TEST_CASE("fp32 copies of 16-bit gradients remain after the step, and are gone at the peak",
          "[plan][megatron]") {
  MegatronRun run = small_run();
  run.gradient_bytes = 2;
  const MegatronMemory memory = megatron_memory(run);
  CHECK(memory.behind_iteration.of("gradients") == 2 * last_rank);
  CHECK(memory.behind_iteration.of("fp32 gradients") == 4 * last_rank);
  CHECK(memory.at_peak.of("fp32 gradients") == 0);
}

TEST_CASE(
    "After an iteration, workspaces of two threads and of TransformerEngine remain, and the "
    "stage's input with its gradient",
    "[plan][megatron]") {
  MegatronRun run = small_run();
  const MemoryByName held = megatron_memory(run).behind_iteration;
  const long long hidden_state = 2 * 4 * 1024 * h;
  CHECK(held.of("cuBLAS workspaces") == 64 * mebibyte);
  CHECK(held.of("TransformerEngine workspaces") == 4 * mebibyte);
  CHECK(held.of("stage inputs") == 2 * hidden_state);
  CHECK(held.total() == 18 * last_rank + 68 * mebibyte + 2 * hidden_state);
  run.gpu = GpuKind::Hopper;
  CHECK(megatron_memory(run).behind_iteration.of("TransformerEngine workspaces") == 32 * mebibyte);
}

/// Returns the activations at the peak, without the loss and its temporary tensors.
long long activations(const MemoryByName& held) {
  long long sum = 0;
  for (const char* const name :
       {"norm inputs", "norm outputs", "queries, keys, values", "attention outputs", "scores",
        "dropout masks", "feed-forward", "inputs of layers"})
    sum += held.of(name);
  return sum;
}

constexpr long long sbh = 1024 * 4 * h;
constexpr long long scores = 8 * 4 * 1024 * 1024;

TEST_CASE("A layer saves s b h (34 + 5 a s / h) bytes (Korthikanti et al.)", "[plan][megatron]") {
  const MegatronMemory memory = megatron_memory(small_run());
  CHECK(activations(memory.at_peak) == 3 * (34 * sbh + 5 * scores));
}

TEST_CASE("Tensor parallelism divides 24 of them, sequence parallelism the other 10",
          "[plan][megatron]") {
  MegatronRun run = small_run();
  run.cut.tensor = 2;
  CHECK(activations(megatron_memory(run).at_peak) == 3 * (10 * sbh + 12 * sbh + 5 * scores / 2));
  run.cut.sequence_parallel = true;
  CHECK(activations(megatron_memory(run).at_peak) == 3 * (17 * sbh + 5 * scores / 2));
}

TEST_CASE("FlashAttention saves no scores, but a copy of its output; cuDNN saves no copy",
          "[plan][megatron]") {
  MegatronRun run = small_run();
  run.attention = AttentionBackend::Auto;  // FlashAttention on this GPU
  CHECK(activations(megatron_memory(run).at_peak) == 3 * 36 * sbh);
  run.gpu = GpuKind::Hopper;
  CHECK(activations(megatron_memory(run).at_peak) == 3 * 34 * sbh);
}

TEST_CASE("Full recomputation saves each layer's input, and restores one layer",
          "[plan][megatron]") {
  MegatronRun run = small_run();
  run.cut.recompute = RecomputeMode::Full;
  const MegatronMemory memory = megatron_memory(run);
  CHECK(activations(memory.at_peak) == 3 * 2 * sbh);
  CHECK(memory.at_peak.of("loss") > 0);  // which is more than a layer
}

TEST_CASE("The loss needs 6 bytes per logit, or 10 if fused by Megatron's compiler",
          "[plan][megatron]") {
  MegatronRun run = small_run();
  const long long logits = 4 * 1024 * 50304LL;
  CHECK(megatron_memory(run).at_peak.of("loss") == 6 * logits);
  run.loss_fusion = LossFusion::Native;
  CHECK(megatron_memory(run).at_peak.of("loss") == 10 * logits);
}

TEST_CASE("Interleaved, the last of four ranks with three chunks has nine layers in flight",
          "[plan][megatron]") {
  MegatronRun run = small_run();
  run.cut.chunks = 3;
  CHECK(activations(megatron_memory(run).at_peak) == 9 * (34 * sbh + 5 * scores));
}

TEST_CASE("Before the first step there is no momentum and no variance", "[plan][megatron]") {
  const MegatronMemory memory = megatron_memory(small_run());
  CHECK(memory.peak.value - memory.first_step_peak.value == 8 * last_rank);
}

/// A mixture of four experts, two per device, with as many channels as the dense layers.
MegatronRun mixture_run() {
  MegatronRun run = small_run();
  TransformerConfig& model = run.training.model;
  model.experts = 4, model.experts_per_token = 1, model.expert_feed_forward = 2048;
  model.set_mixture_behind(0);
  run.cut.expert = 2;
  run.bias = false;
  return run;
}

TEST_CASE("Experts and their optimizer state are partitioned, over fewer replicas",
          "[plan][megatron]") {
  MegatronRun run = mixture_run();
  run.cut.zero = 1;
  const long long experts = 3 * 2 * 8 * h * h;
  const long long others = 3 * (4 * h * h + 4 * h + 4 * h) + 2 * h + 50304 * h;
  const MemoryByName held = megatron_memory(run).behind_iteration;
  CHECK(held.of("parameters") == 2 * (experts + others));
  CHECK(held.of("optimizer state") == 8 * others / 2 + 8 * experts);
}

TEST_CASE("Grouped products have workspaces for four more streams", "[plan][megatron]") {
  MegatronRun run = mixture_run();
  run.grouped_experts = true;
  CHECK(megatron_memory(run).behind_iteration.of("TransformerEngine workspaces") ==
        5 * 4 * mebibyte);
}

TEST_CASE("Fused weight gradients keep a placeholder for each shape of weight",
          "[plan][megatron]") {
  MegatronRun run = small_run();
  run.fused_weight_gradients = true;
  CHECK(megatron_memory(run).behind_iteration.of("stand-ins of weight gradients") ==
        2 * (12 * h * h + 50304 * h));
  run.date = 20250601;
  CHECK(megatron_memory(run).behind_iteration.of("stand-ins of weight gradients") == 0);
}

TEST_CASE("8-bit training keeps casts of weights and half of the products' saved inputs",
          "[plan][megatron]") {
  MegatronRun run = small_run();
  run.precision = MegatronPrecision::Float8;
  const MegatronMemory memory = megatron_memory(run);
  CHECK(memory.at_peak.of("8-bit weights") == 2 * (last_rank - 50304 * h));
  CHECK(memory.at_peak.of("norm outputs") == 3 * 2 * sbh);
}

TEST_CASE("A hybrid's layers are those of its pattern", "[plan][megatron]") {
  MegatronRun run = small_run();
  run.family = MegatronFamily::Hybrid;
  run.layer_pattern = "M-|M*|MM|-M*";
  run.mamba = {.heads = 16, .head_channels = 64, .groups = 8, .states = 128};
  const long long mamba =
      h * (2 * 1024 + 2 * 1024 + 16) + 5 * (1024 + 2048) + 3 * 16 + 1024 + 1024 * h + 2 * h;
  const long long feed_forward = 8 * h * h + 5 * h + 2 * h;
  const long long attention = 4 * h * h + 4 * h + 2 * h;
  CHECK(megatron_memory(run).behind_iteration.of("parameters") ==
        2 * (mamba + feed_forward + attention + 2 * h + 50304 * h));
  run.layer_pattern = "M-|M*";
  CHECK_THAT(error_of([&] { megatron_memory(run); }), Contains("2 stages, but pp 4"));
}

TEST_CASE("Unsupported runs are rejected", "[plan][megatron]") {
  MegatronRun run = small_run();
  run.cut.zero = 3;
  CHECK_THAT(error_of([&] { megatron_memory(run); }), Contains("zero is 3"));
  run = small_run();
  run.family = MegatronFamily::EncoderDecoder;
  CHECK_THAT(error_of([&] { megatron_memory(run); }), Contains("pp: an encoder and a decoder"));
}

}  // namespace megatron_memory_test
