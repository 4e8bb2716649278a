#include "pipewright/models/trainers/megatron_arguments.hpp"

#include <cmath>

#include "pipewright/plan/model/transformer_layers.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace megatron_arguments_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using pipewright::test::error_of;

const std::string small =
    "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --vocab-size 100 ";

TransformerConfig config_of(const std::string& more) {
  return transformer_from_megatron(small + more, "args.sh").training.model;
}
std::string refusal(const std::string& text) {
  return error_of([&] { transformer_from_megatron(text, "args.sh"); });
}

TEST_CASE("Megatron's example of a GPT is read: a script with a variable and quoted options",
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
  --moe-router-score-function: sigmoid
  --moe-router-enable-expert-bias: true
  --moe-layer-freq: ([0]*3+[1]*58)
  --mtp-num-layers: 1
)",
      "v3.yaml");
  CHECK(parameters_of(found.training.model) == 671'026'419'200);
  CHECK(found.training.model.predictions == 1);
}

TEST_CASE("Megatron's rotary embeddings, norms, windows and routers are read", "[plan][model]") {
  const std::string rope = "--position-embedding-type rope ";
  const auto llama = config_of(rope +
                               "--rotary-base 500000 --use-rope-scaling --norm-epsilon 1e-6 "
                               "--apply-layernorm-1p --rotary-interleaved");
  CHECK(llama.rotary == Rotary{.base = 500'000,
                               .neighbors = true,
                               .scaling = RotaryScaling::Llama3,
                               .factor = 8,
                               .longest = 8192});
  CHECK(llama.norm_epsilon == 1e-6);
  CHECK(llama.norm_plus_one);
  CHECK(config_of(rope + "--rotary-percent 0.5").rotary.share == 0.5);
  const auto yarn = config_of("--position-embedding-type yarn --rotary-scaling-factor 32").rotary;
  CHECK(yarn.scaling == RotaryScaling::Yarn);
  CHECK(yarn.longest == 4096);
  CHECK(yarn.magnitude == Approx(1.3466).epsilon(1e-4));  // 0.1 ln 32 + 1
  CHECK(config_of("").activation == Activation::Tanh);    // fused with the bias
  CHECK(config_of("--no-bias-gelu-fusion").activation == Activation::Usual);
  const auto windowed = config_of("--window-size (63,0) --window-attn-skip-freq 2");
  CHECK(windowed.window == 64);
  CHECK(windowed.windowed == std::vector<bool>{true, false});
  const std::string experts = "--disable-bias-linear --num-experts 4 ";
  CHECK_FALSE(config_of(experts + "--moe-router-pre-softmax").weights_sum_to_one);
  CHECK(config_of("--num-experts 4").router_bias);  // as all linear layers have one
  CHECK(config_of(experts + "--moe-router-num-groups 2 --moe-router-group-topk 1").router_groups ==
        2);
  CHECK(refusal(small + experts + "--moe-router-score-function sqrtsoftplus")
            .find("\"sqrtsoftplus\" is not known here") != std::string::npos);
  CHECK(refusal(small + rope + "--rotary-percent 1.5")
            .find("--rotary-percent: a number above 0 and") != std::string::npos);
}

TEST_CASE("Missing arguments get Megatron's defaults", "[plan][model]") {
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

TEST_CASE("Invalid arguments of Megatron are rejected with line, column and the nearest known one",
          "[plan][model]") {
  CHECK(refusal("--num-layer 2 --hidden-size 64 \\\n --num-attention-heads 4 --seq-length 8") ==
        "args.sh:1:13: --num-layer: \"--num-layers\" is missing; this is the nearest to it");
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

const std::string without_words =
    "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 ";

TEST_CASE("A tokenizer with a known vocabulary replaces --vocab-size, and is named",
          "[plan][model]") {
  const auto told = [](const std::string& more) {
    return transformer_from_megatron(without_words + more, "args.sh");
  };
  const auto words = [&](const std::string& more) { return told(more).training.model.vocabulary; };
  CHECK(words("--tokenizer-type GPT2BPETokenizer") == 50257);
  CHECK(words("--tokenizer-type Llama2Tokenizer") == 32000);
  CHECK(words("--tokenizer-type GPTSentencePieceTokenizer") == 256000);
  CHECK(words("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B") ==
        128256);
  CHECK(words("--vocab-file /data/gpt2-vocab.json --merge-file /data/gpt2-merges.txt") == 50257);
  CHECK(words("--tokenizer-type NullTokenizer --vocab-size 131072") == 131073);
  CHECK(words("--tokenizer-type GPT2BPETokenizer --vocab-size 100") == 100);
  CHECK(told("--tokenizer-type GPT2BPETokenizer").assumed ==
        std::vector<std::string>{"--vocab-size 50257, as GPT2BPETokenizer has it"});
  CHECK(refusal(without_words + "--tokenizer-type OwnTokenizer") ==
        "args.sh:1:91: --tokenizer-type: the vocabulary size of OwnTokenizer is unknown: set "
        "--vocab-size");
  CHECK(words("--tokenizer-type BertWordPieceCase --vocab-extra-ids 100") == 29096);
  CHECK(told("").assumed == std::vector<std::string>{"--vocab-size 50257, as GPT2BPETokenizer, the "
                                                     "default tokenizer, has it"});
}

TEST_CASE("A padded vocabulary is taken as it is", "[plan][model]") {
  const auto config = config_of("--padded-vocab-size 201088");
  CHECK(config.vocabulary == 201088);
  CHECK(config.vocabulary_multiple == 1);
}

TEST_CASE("quick-geglu gates the feed-forward", "[plan][model]") {
  const auto quick = transformer_from_megatron(small + "--quick-geglu", "args.sh");
  CHECK(quick.training.model.gated);
  CHECK(quick.training.model.feed_forward == 256);  // Megatron's default, as without a gate
  REQUIRE(quick.uncounted.size() == 1);
  CHECK(quick.uncounted[0].option == "--quick-geglu");
  CHECK(refusal(small + "--swiglu --quick-geglu").find("--quick-geglu: cannot be combined") !=
        std::string::npos);
}

TEST_CASE("--spec is refused unless its layers are Megatron's own", "[plan][model]") {
  CHECK(refusal(small + "--spec my_models.attention get_spec") ==
        "args.sh:1:98: --spec: replaces the layers, so that their sizes are unknown");
  CHECK(refusal(small + "--attention-output-gate").find("--attention-output-gate: adds a gate") !=
        std::string::npos);
  CHECK(transformer_from_megatron(small + "--spec local", "args.sh").uncounted.empty());
}

TEST_CASE("Norms, rotary embedding, router and window are those of the arguments",
          "[plan][model]") {
  const auto config = config_of(
      "--norm-epsilon 1e-6 --rotary-base 1000000 --rotary-percent 0.5 --rotary-interleaved "
      "--use-rope-scaling --rope-scaling-factor 32 --window-size (31,0) --window-attn-skip-freq 2 "
      "--num-experts 8 --moe-router-score-function sigmoid --moe-router-topk-scaling-factor 2.5 "
      "--moe-router-num-groups 4 --moe-router-group-topk 2 --moe-router-enable-expert-bias");
  CHECK(config.norm_epsilon == 1e-6);
  CHECK(config.rotary.base == 1e6);
  CHECK(config.rotary.share == 0.5);
  CHECK(config.rotary.neighbors);
  CHECK(config.rotary.scaling == RotaryScaling::Llama3);
  CHECK(config.rotary.factor == 32);
  CHECK(config.rotary.longest == 8192);
  CHECK(config.window == 32);
  CHECK(config.windowed == std::vector<bool>{true, false});
  CHECK(config.router_scores == RouterScores::Sigmoid);
  CHECK(config.weights_sum_to_one);
  CHECK(config.routed_scale == 2.5);
  CHECK(config.router_groups == 4);
  CHECK(config.groups_per_token == 2);
  CHECK_FALSE(config_of("--num-experts 8 --moe-router-pre-softmax").weights_sum_to_one);
}

TEST_CASE("Latent attention's YaRN has DeepSeek-V3's magnitudes", "[plan][model]") {
  const auto config = config_of(
      "--multi-latent-attention --rotary-scaling-factor 40 --mscale 1.0 --mscale-all-dim 1.0");
  CHECK(config.rotary.scaling == RotaryScaling::Yarn);
  CHECK(config.rotary.magnitude == Approx(1));
  const double once = 0.1 * std::log(40) + 1;
  CHECK(config.score_scale == Approx(once * once / std::sqrt(192)));
  CHECK(config_of("--multi-latent-attention").rotary.scaling == RotaryScaling::None);
}

TEST_CASE("--sequence stands for a missing --seq-length only", "[plan][model]") {
  const std::string without =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --vocab-size 100 ";
  CHECK(transformer_from_megatron(without, "args.sh", 512).training.sequence == 512);
  CHECK(transformer_from_megatron(small, "args.sh", 512).training.sequence == 128);
  CHECK(refusal(without) == "args.sh:1:1: --seq-length: is missing");
}

TEST_CASE("A hybrid's pattern gives its layers, and its pipes the virtual stages",
          "[plan][model]") {
  const auto hybrid = [](const std::string& more) {
    return transformer_from_megatron(small + more, "args.sh");
  };
  CHECK(hybrid("--hybrid-layer-pattern M-M*M").training.model.layers == 5);
  const auto piped =
      hybrid("--pipeline-model-parallel-size 2 --hybrid-layer-pattern 'M-|M*|M|EE/*E'");
  CHECK(piped.cut.chunks == 2);
  CHECK(piped.cut.stage_layers == std::vector<int>{2, 2, 1, 2});
  CHECK(refusal(small + "--pipeline-model-parallel-size 2 --hybrid-layer-pattern 'M|M*|M'")
            .find("has 3 stages, which do not divide among 2 ranks") != std::string::npos);
  CHECK(refusal(small + "--pipeline-model-parallel-size 2 --hybrid-layer-pattern 'M|M' "
                        "--num-virtual-stages-per-pipeline-rank 2")
            .find("--num-virtual-stages-per-pipeline-rank: cannot be combined") !=
        std::string::npos);
  CHECK(refusal("python pretrain_hybrid.py " + small).find("--hybrid-layer-pattern: is missing") !=
        std::string::npos);
}

TEST_CASE("A layout needs the embedding, the loss and its predictions", "[plan][model]") {
  const auto fault = [](const std::string& layout) {
    return refusal(small + "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout '" +
                   layout + "'");
  };
  CHECK(fault("Et|tL") == "no error");
  CHECK(fault("t|tL").find("has no E, the embedding, as its first layer") != std::string::npos);
  CHECK(fault("Et|t").find("has no L, the loss, as its last layer") != std::string::npos);
  CHECK(fault("Et|tmL").find("has 1 prediction layers (m), but --mtp-num-layers is 0") !=
        std::string::npos);
}

TEST_CASE("A YAML file's value is the rest of its line", "[plan][model]") {
  const auto found = transformer_from_megatron(R"(ENV_VARS:
  PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True
  CUBLAS_WORKSPACE_CONFIG: :4096:8
MODEL_ARGS:
  --num-layers: 14
  --hidden-size: 64
  --num-attention-heads: 4
  --seq-length: 128
  --vocab-size: 100  # words
  --pipeline-model-parallel-size: 2
  --pipeline-model-parallel-layout: Et*2|(tt|)*6L
  --recompute-granularity: selective
  --recompute-modules: [moe_act, mlp]
  --sequence-parallel: false
  --tokenizer-type: "NullTokenizer"
)",
                                               "args.yaml");
  CHECK(found.cut.stage_layers == std::vector<int>{2, 2, 2, 2, 2, 2, 2, 0});
  CHECK(found.training.model.vocabulary == 101);
  CHECK(found.options.recompute_modules == std::vector<std::string>{"moe_act", "mlp"});
  CHECK(found.options.environment ==
        "CUBLAS_WORKSPACE_CONFIG=:4096:8 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

TEST_CASE("Megatron's arguments for kernels, precision and overlap are read", "[plan][model]") {
  const auto usual = transformer_from_megatron(small, "args.sh");
  CHECK(usual.options.implementation == "transformer_engine");
  CHECK(usual.options.attention_backend == "auto");
  CHECK(usual.options.precision == "fp32");
  CHECK(usual.options.gradient_dtype == "fp32");
  CHECK(usual.options.attention_dropout == 0.1);
  CHECK(usual.options.fused_gradient_accumulation);
  CHECK(usual.options.cuda_graph == "no");
  CHECK(usual.uncounted.empty());
  const auto other = transformer_from_megatron(
      small +
          "--bf16 --fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather "
          "--overlap-grad-reduce --overlap-param-gather --tp-comm-overlap --use-tp-pp-dp-mapping "
          "--transformer-impl local --attention-backend flash --cuda-graph-impl local "
          "--cuda-graph-scope full_iteration --cross-entropy-loss-fusion --lr 1 --new-thing 5 "
          "--expert-tensor-parallel-size 1 --no-gradient-accumulation-fusion",
      "args.sh");
  CHECK(other.options.precision == "fp8-hybrid+bf16");
  CHECK(other.options.fp8_recipe == "tensorwise");
  CHECK(other.options.fp8_parameters);
  CHECK(other.options.implementation == "local");
  CHECK(other.options.cuda_graph == "full");
  CHECK(other.options.cross_entropy_fusion == "native");
  CHECK_FALSE(other.options.fused_gradient_accumulation);
  CHECK(other.cut.overlaps_gradients);
  CHECK(other.cut.overlaps_parameters);
  CHECK(other.cut.overlaps_sums);
  CHECK(other.cut.copies_last);
  CHECK(other.cut.expert_tensor == 1);
  REQUIRE(other.uncounted.size() == 1);
  CHECK(other.uncounted[0].option == "--new-thing");
  CHECK(other.uncounted[0].reason.find("is unknown") == 0);
}

TEST_CASE("Layers per stage can be given in Megatron's four ways", "[plan][model]") {
  const auto layers = [](const std::string& more) {
    return transformer_from_megatron(small + "--num-layers 14 " + more, "args.sh").cut.stage_layers;
  };
  using Layers = std::vector<int>;
  CHECK(layers("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 2") ==
        Layers{2, 4, 4, 4});
  CHECK(layers("--pipeline-model-parallel-size 4 --decoder-last-pipeline-num-layers 5") ==
        Layers{3, 3, 3, 5});
  CHECK(layers("--pipeline-model-parallel-size 4 --account-for-embedding-in-pipeline-split "
               "--account-for-loss-in-pipeline-split --num-layers-per-virtual-pipeline-stage 2") ==
        Layers{1, 2, 2, 2, 2, 2, 2, 1});
  CHECK(refusal(small + "--num-layers 14 --pipeline-model-parallel-size 4 "
                        "--decoder-first-pipeline-num-layers 3")
            .find("--decoder-first-pipeline-num-layers: leaves 11 layers of 14 to 3 ranks") !=
        std::string::npos);
}

TEST_CASE("A missing file is named", "[plan][model]") {
  CHECK(error_of([] { read_transformer("nowhere/config.json"); }) ==
        "nowhere/config.json: cannot be read: No such file or directory");
}

}  // namespace megatron_arguments_test
