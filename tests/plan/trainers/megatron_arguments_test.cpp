#include "pipewright/plan/trainers/megatron_arguments.hpp"

#include "pipewright/plan/model/transformer_layers.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace megatron_arguments_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

const std::string small =
    "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --vocab-size 100 ";

TransformerConfig config_of(const std::string& more) {
  return transformer_from_megatron(small + more, "args.sh").training.model;
}
std::string refusal(const std::string& text) {
  return error_of([&] { transformer_from_megatron(text, "args.sh"); });
}

TEST_CASE("Megatron's example of a GPT: a script with a variable and quoted options",
          "[plan][model]") {
  const auto found = read_transformer(PIPEWRIGHT_TEST_DATA_DIR "/models/megatron-345m.sh");
  CHECK(found.training.model.name == "megatron-345m");
  CHECK(found.training.model.hidden == 1024);
  CHECK(found.cut.tensor == 2);
  CHECK(found.cut.microbatch == 4);
  CHECK(found.training.sequence == 1024);
  // 12 l h² (1 + 13/(12h) + (V + s)/(12 l h)) and the last norm; 50257 is padded to 50304.
  CHECK(parameters_of(found.training.model) ==
        24 * (12 * 1024 * 1024 + 13 * 1024) + (50304 + 1024) * 1024 + 2 * 1024);
}

TEST_CASE("Llama 3's sizes as Megatron's arguments give Llama 3's parameters", "[plan][model]") {
  const auto found = transformer_from_megatron(
      R"(LLAMA=(
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32  # as in its config.json
  --group-query-attention --num-query-groups 8 --ffn-hidden-size=14336 --swiglu
  --normalization RMSNorm --position-embedding-type rope --disable-bias-linear
  --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0.0
  --vocab-size 128256 --seq-length 8192 --max-position-embeddings 8192
  --tensor-model-parallel-size 4 --sequence-parallel --recompute-granularity selective)
torchrun pretrain_gpt.py "${LLAMA[@]}" --context-parallel-size 2
)",
      "llama.sh");
  CHECK(parameters_of(found.training.model) == 8'030'261'248);
  CHECK_FALSE(found.training.model.dropout);
  CHECK(found.cut.tensor == 4);
  CHECK(found.cut.sequence_parallel);
  CHECK(found.cut.context == 2);
  CHECK(found.cut.recompute == RecomputeMode::Selective);
}

TEST_CASE("DeepSeek-V3's sizes as Megatron's arguments give its parameters", "[plan][model]") {
  const auto found = transformer_from_megatron(
      R"(MODEL_ARGS:
  --num-layers: 61
  --hidden-size: 7168
  --ffn-hidden-size: 18432
  --num-attention-heads: 128
  --seq-length: 4096
  --vocab-size: 129280
  --multi-latent-attention: true
  --q-lora-rank: 1536
  --kv-lora-rank: 512
  --qk-head-dim: 128
  --qk-pos-emb-head-dim: 64
  --v-head-dim: 128
  --qk-layernorm: true
  --kv-channels: 128
  --swiglu: true
  --normalization: RMSNorm
  --position-embedding-type: rope
  --disable-bias-linear: true
  --untie-embeddings-and-output-weights: true
  --num-experts: 256
  --moe-router-topk: 8
  --moe-ffn-hidden-size: 2048
  --moe-shared-expert-intermediate-size: 2048
  --moe-router-enable-expert-bias: true
  --moe-layer-freq: ([0]*3+[1]*58)
  --mtp-num-layers: 1
)",
      "v3.yaml");
  CHECK(parameters_of(found.training.model) == 671'026'419'200);
  CHECK(found.training.model.predictions == 1);
}

TEST_CASE("What is not said is what Megatron takes", "[plan][model]") {
  const auto config = config_of("");
  CHECK(config.feed_forward == 256);
  CHECK(config.tied);
  CHECK(config.learned_positions);
  CHECK(config.longest == 128);
  CHECK(config.feed_forward_bias);
  CHECK(config.dropout);
  CHECK(config.vocabulary_multiple == 128);
  CHECK(config_of("--swiglu --hidden-size 4096").feed_forward == 10880);
  const auto mixture = config_of("--num-experts 4 --moe-layer-freq 2");
  CHECK(mixture.experts_per_token == 2);
  CHECK(mixture.has_experts(0));
  CHECK_FALSE(mixture.has_experts(1));
}

TEST_CASE("Megatron's arguments are refused with line, column and the nearest known",
          "[plan][model]") {
  CHECK(refusal("--num-layer 2 --hidden-size 64 \\\n --num-attention-heads 4 --seq-length 8") ==
        "args.sh:1:13: --num-layer: \"--num-layers\" is missing; this is the nearest to it\n"
        "args.sh:1:1: --vocab-size: is missing");
  CHECK(refusal(small + "\n--hidden-size $HIDDEN") ==
        "args.sh:2:15: --hidden-size: $HIDDEN is not set in this file");
  CHECK(refusal(small + "--num-experts four") ==
        "args.sh:1:105: --num-experts: a whole number is needed here, not \"four\"");
  CHECK(refusal(small + "--normalization RMSnorm") ==
        "args.sh:1:107: --normalization: \"RMSnorm\" is not known here, did you mean \"RMSNorm\"? "
        "(possible: LayerNorm or RMSNorm)");
  CHECK(refusal(small + "--group-query-attention --num-query-groups 3") ==
        "args.sh:1:134: --num-query-groups: 4 heads do not divide among 3 heads of keys and "
        "values; 2 or 4 would do");
  CHECK(refusal(small + "--num-experts 4 --moe-layer-freq [0,1,1]") ==
        "args.sh:1:124: --moe-layer-freq: the list has 3 layers, the model 2");
  CHECK(refusal(small + "--num-experts 4 --moe-layer-freq [0,2]") ==
        "args.sh:1:124: --moe-layer-freq: \"[0,2]\" is neither a distance of layers nor a list "
        "such as ([0]*3+[1]*58)");
  CHECK(refusal("").find("args.sh:1:1: --num-layers: is missing") == 0);
}

TEST_CASE("A file that is not there is named", "[plan][model]") {
  CHECK(error_of([] { read_transformer("nowhere/config.json"); }) ==
        "nowhere/config.json: cannot be read: No such file or directory");
}

}  // namespace megatron_arguments_test
