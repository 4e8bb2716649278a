#include "option_effects.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "measured/settings.hpp"
#include "pipewright/plan/split.hpp"

// The names are those of megatron/training/arguments.py and of the dataclasses from which it makes
// options (core 0.20, commit d98e8a64), and of earlier versions since 2023.

namespace pipewright::models {
namespace {

/// Names separated by blanks; a name that ends with * stands for all that begin so.
struct EffectOfOptions {
  OptionEffect effect;
  std::string_view names;
};

constexpr std::array effects{
    // Read by the memory model from all arguments (measured/megatron_words.cpp), which also refuses
    // some of them.
    EffectOfOptions{
        OptionEffect::Read,
        "decoder-seq-length exp-avg-dtype exp-avg-sq-dtype main-params-dtype mamba-head-dim "
        "mamba-num-groups mamba-num-heads mamba-state-dim hybrid-layer-pattern "
        "hybrid-override-pattern mtp-hybrid-override-pattern hybrid-attention-ratio "
        "hybrid-mlp-ratio moe-expert-capacity-factor mtp-use-repeated-layer "
        "no-bias-swiglu-fusion no-masked-softmax-fusion num-distributed-optimizer-instances "
        "use-fused-weighted-squared-relu use-precision-aware-optimizer wgrad-deferral-limit "
        "use-torch-fsdp2 use-megatron-fsdp use-custom-fsdp optimizer-cpu-offload cpu-offloading "
        "cpu-offloading-num-layers fine-grained-activation-offloading export-kd-teacher-load"},
    // Read only with the option that they belong to: attention with groups or latent ranks,
    // experts, windows, scaled rotary frequencies.
    EffectOfOptions{
        OptionEffect::Read,
        "num-query-groups q-lora-rank kv-lora-rank qk-head-dim qk-pos-emb-head-dim v-head-dim "
        "moe-router-topk moe-ffn-hidden-size moe-shared-expert-intermediate-size "
        "moe-router-enable-expert-bias moe-layer-freq moe-router-score-function "
        "moe-router-pre-softmax moe-router-topk-scaling-factor moe-router-num-groups "
        "moe-router-group-topk window-attn-skip-freq rope-type rope-scaling-factor "
        "rotary-scaling-factor mscale mscale-all-dim yarn-beta-fast yarn-beta-slow "
        "yarn-original-max-position-embeddings vocab-size tokenizer-type tokenizer-model "
        "vocab-file vocab-extra-ids make-vocab-size-divisible-by "
        "num-virtual-stages-per-pipeline-rank num-layers-per-virtual-pipeline-stage "
        "decoder-first-pipeline-num-layers decoder-last-pipeline-num-layers "
        "account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split "
        "pipeline-model-parallel-layout num-layers seq-length cross-entropy-fusion-impl "
        "fp8-recipe"},
    // Learning: rates, schedules, losses, initial values, randomness.
    EffectOfOptions{
        OptionEffect::None,
        "lr lr-* min-lr decoupled-* weight-decay* start-weight-decay end-weight-decay "
        "no-weight-decay-* apply-wd-to-qk-layernorm clip-grad adam-* sgd-momentum lion-* muon-* "
        "seed init-method* embedding-init-method-std data-parallel-random-init no-initialization "
        "loss-scale* initial-loss-scale min-loss-scale hysteresis calculate-per-token-loss "
        "mtp-loss-* moe-router-bias-update-rate moe-router-load-balancing-type moe-router-dtype "
        "moe-router-fusion moe-router-force-* moe-router-quantile-* moe-router-topk-limited-* "
        "moe-router-padding-* moe-aux-loss-* moe-z-loss-* moe-input-jitter-eps "
        "moe-token-drop-policy moe-use-upcycling moe-upcycling-granularity moe-per-layer-logging "
        "moe-enable-routing-replay iterations-to-skip train-* phase-transition-iterations "
        "decrease-batch-size-if-needed head-lr-mult finetune"},
    // Checkpoints, logs, evaluation, and the life of a job.
    EffectOfOptions{
        OptionEffect::None,
        "save* load* no-load* no-save* disable-save-* persistent-save-* non-persistent-* ckpt-* "
        "no-ckpt-* disable-ckpt-* auto-detect-ckpt-format async-* dist-ckpt-* use-dist-ckpt "
        "distrib-optim-* use-persistent-ckpt-worker use-checkpoint-opt* override-* "
        "pretrained-checkpoint verify-integrity replication* dump-param-to-param-group-map "
        "log-* no-log* disable-log-* logging-* no-barrier-* timing-log-* no-timing-* "
        "tensorboard-* wandb-* one-logger-* no-one-logger otel-* app-tag-* config-logger-dir "
        "nvtx-ranges profile profile-* use-pytorch-profiler pytorch-profiler-* record-* "
        "memory-snapshot-path flight-recorder-* no-flight-recorder-* disable-flight-recorder-* "
        "run-workload-inspector-server straggler-* disable-straggler-* gpu-sniff-test-interval "
        "eval-* start-eval-at-iter full-validation multiple-validation-sets validation-set-names "
        "skip-train test-mode exit-* adlr-* inprocess-* ft-* calc-ft-* enable-ft-package "
        "fault-injector-* error-injection-* rerun-* result-rejected-* check-* no-check-* "
        "manual-gc* no-manual-gc-* disable-manual-gc-* onnx-safe use-mcore-models "
        "use-legacy-models enable-experimental enable-msc disable-msc is-hybrid-model"},
    // Data and tokenizers.
    EffectOfOptions{
        OptionEffect::None,
        "data-path data-cache-path data-args-path train-data-path valid-* test-data-path split "
        "per-* mock-data num-workers num-dataset-builder-threads dataloader-* no-mmap-* "
        "no-create-attention-mask-in-dataloader reset-* eod-* short-seq-prob mask-prob "
        "mid-level-dataset-surplus object-storage-cache-path allow-ambiguous-pad-tokens fim-* "
        "sft sft-* tokenizer-* no-tokenizer-* disable-tokenizer-* no-use-tokenizer-* "
        "disable-use-tokenizer-* null-tokenizer-* tiktoken-* merge-file chat-template "
        "trust-remote-code use-gigatoken no-pad-vocab-size disable-pad-vocab-size "
        "bert-no-binary-head bert-embedder-type output-bert-embeddings context-length"},
    // Processes, communicators and the details of kernels, whose effect is in the measured
    // constants.
    EffectOfOptions{
        OptionEffect::None,
        "distributed-* local-rank rank world-size lazy-mpu-init use-cpu-initialization "
        "init-model-with-meta-device fake-process-group nccl-* high-priority-* "
        "disable-gloo-process-groups use-gloo-process-groups tp-comm-* no-tp-comm-* "
        "disable-tp-comm-* disable-symmetric-registration no-align-* disable-align-* "
        "ddp-average-in-collective ddp-bucket-size ddp-num-buckets ddp-pad-buckets-* "
        "attention-softmax-in-fp32 apply-query-key-layer-scaling no-persist-layer-norm "
        "openai-gelu no-bias-dropout-fusion no-rope-fusion "
        "no-clone-scatter-output-in-embedding disable-clone-scatter-output-in-embedding "
        "disable-bf16-reduced-precision-matmul te-rng-tracker cuda-graph-warmup-steps "
        "fp8-amax-* fp8-margin fp8-interval moe-permute-fusion moe-deepep-num-sms "
        "moe-hybridep-* moe-flex-dispatcher-num-sms mtp-standalone "
        "yarn-correction-range-round-to-int no-yarn-correction-range-round-to-int"},
    // Inference, reinforcement learning's rollouts, other kinds of models.
    EffectOfOptions{
        OptionEffect::None,
        "inference-* no-inference-* rl-* no-rl-* grpo-* langrl-* refit-method "
        "use-legacy-static-engine decode-only-cuda-graphs enable-chunked-prefill "
        "num-speculative-tokens flash-decode cache-mla-latents symmetric-ar-type "
        "nccl-all-reduce-for-prefill mlp-chunks-for-prefill max-tokens-to-oom "
        "mamba-inference-* moe-pad-experts-for-cuda-graph-inference "
        "use-same-sampling-seed-across-dp-ranks no-use-same-sampling-* batch-invariant-backend "
        "bert-load ict-* biencoder-* block-data-path embedding-path evidence-data-path "
        "indexer-* query-in-block-prob retriever-* titles-data-path use-one-sent-docs dino-* "
        "img-* swin-* vision-* num-classes num-channels patch-dim sample-rate classes-fraction "
        "data-per-class-fraction no-data-sharding iter-per-epoch mask-type mask-factor "
        "relative-attention-*"},
    // Details of options that are themselves refused or named.
    EffectOfOptions{
        OptionEffect::None,
        "dsa-* no-dsa-* disable-dsa-* gdp-* linear-* mhc-* mup-* kitchen-attention-backend "
        "gtp-* moe-paged-stash-* qk-clip-* num-layers-at-* megatron-fsdp-* fsdp-* "
        "data-parallel-sharding-strategy outer-dp-sharding-strategy "
        "enable-full-sharding-in-hsdp no-strict-fsdp-dtensor-load "
        "disable-strict-fsdp-dtensor-load torch-fsdp2-* keep-fp8-transpose-cache "
        "suggested-communication-unit-size cpu-offloading-* optimizer-offload-fraction "
        "use-torch-optimizer-for-cpu-offload overlap-cpu-optimizer-* no-pin-cpu-* "
        "offload-modules activation-offload-fraction delay-offload-until-cuda-graph "
        "delta-offload-bytes-across-pp-ranks min-offloaded-tensor-size "
        "fine-grained-offloading-* logits-* moe-ncclep-* moe-routing-trace-* sharp-* "
        "no-use-layer-wise-param-layout"},
    EffectOfOptions{
        OptionEffect::Run,
        "batch-invariant-mode cp-comm-type create-all-gather-group "
        "ddp-param-name-patterns-for-fp32-local-accumulation "
        "ddp-reduce-scatter-with-fp32-accumulation delay-wgrad-compute no-fp8-wgrad "
        "disable-fp8-wgrad disable-jit-fuser disable-mamba-mem-eff-path "
        "distribute-saved-activations empty-unused-memory-level "
        "ep-overlap-early-attn-memory-release expert-tensor-parallel-num-weight-shards "
        "tensor-parallel-num-weight-shards first-last-layers-bf16 flash-attention-version "
        "fp16-lm-cross-entropy fp4-param-gather fp4-quantizer-factory fp4-recipe fp8-output-proj "
        "fp8-quantizer-factory fused-residual-rmsnorm hierarchical-context-parallel-sizes "
        "hybrid-context-parallel use-kitchen-attention main-grads-dtype "
        "mamba-training-ssm-states-dtype max-seqlen-per-dp-cp-rank mla-down-proj-fusion "
        "mlp-chunks-for-training moe-combine-bwd-dtype moe-dispatch-fwd-dtype moe-enable-deepep "
        "moe-flex-dispatcher-backend moe-expert-rank-capacity-factor moe-layer-recompute "
        "moe-mlp-glu-interleave-size moe-shared-expert-glu-interleave-size "
        "moe-pad-expert-input-to-capacity moe-paged-stash moe-permute-fusion-into-hybridep "
        "moe-shared-expert-overlap moe-single-grouped-bias moe-single-grouped-weight "
        "moe-use-grouped-tensor mtp-detach-heads no-gradient-reduce-div-fusion "
        "optimizer-cuda-graph output-logit-dtype overlap-dispatch-backward-with-experts-wgrad "
        "overlap-moe-expert-parallel-comm overlap-p2p-communication-warmup-flush perform-rl-step "
        "pipeline-model-parallel-comm-backend qk-clip rampup-batch-size "
        "reuse-grad-buf-for-mxfp8-param-ag step-batch-size-schedule te-precision-config-file "
        "use-mp-args-from-checkpoint-args use-grouped-gemm-for-dense-mlp "
        "use-grouped-gemm-for-shared-expert use-nccl-ub use-ring-exchange-p2p use-sharp "
        "use-te-activation-func use-transformer-engine-op-fuser"},
    EffectOfOptions{
        OptionEffect::Computed,
        "activation-func-clamp-value apply-residual-connection-post-layernorm glu-linear-offset "
        "moe-apply-probs-on-input moe-shared-expert-gate mrope-section mtp-hsm no-rope-freq "
        "qk-l2-norm softmax-type squared-relu use-mup"}};

constexpr std::string_view other_layers = "replaces the layers, so that their sizes are unknown";

const std::map<std::string, std::string, std::less<>>& refusals() {
  static const std::map<std::string, std::string, std::less<>> all{
      {"attention-output-gate", "adds a gate to attention, which is not counted"},
      {"batch-size", "Megatron-LM no longer has it: use --micro-batch-size"},
      {"checkpoint-activations", "Megatron-LM no longer has it: use --recompute-granularity"},
      {"enable-mhc-connections", "adds residual streams, which are not counted"},
      {"experimental-attention-variant", std::string(other_layers)},
      {"freeze-all-layers", "no layer is trained"},
      {"heterogeneous-layers-config-encoded-json", std::string(other_layers)},
      {"heterogeneous-layers-config-path", std::string(other_layers)},
      {"model-parallel-size", "Megatron-LM no longer has it: use --tensor-model-parallel-size"},
      {"moe-latent-size", "adds projections around the experts, which are not counted"},
      {"warmup", "Megatron-LM no longer has it: use --lr-warmup-fraction"},
      {"yaml-cfg", "the sizes are in that file: write them as arguments"}};
  return all;
}

/// Returns true if the first word of --spec is a module of Megatron-LM with layers that are
/// counted.
bool is_counted_spec(std::string_view words) {
  words.remove_prefix(words.starts_with('[') ? 1 : 0);
  return words.starts_with("megatron.core.models.hybrid.") ||
         words.starts_with("megatron.core.models.mamba.") || words == "local";
}

bool has_name(std::string_view names, const std::string& option) {
  for (const std::string& name : plan::split(std::string(names), ' ')) {
    const bool begins = name.ends_with('*');
    if (begins ? option.starts_with(std::string_view(name).substr(0, name.size() - 1))
               : option == name)
      return true;
  }
  return false;
}

}  // namespace

OptionEffect effect_of(const std::string& option) {
  if (refusals().contains(option))
    return OptionEffect::Refused;
  for (const EffectOfOptions& each : effects)
    if (has_name(each.names, option))
      return each.effect;
  return OptionEffect::Unknown;
}

std::string refusal_of(const std::string& option, const std::string& value) {
  if (option == "spec")
    return is_counted_spec(value) ? "" : std::string(other_layers);
  const auto found = refusals().find(option);
  return found == refusals().end() ? "" : found->second;
}

std::string refusal_in(const std::string& arguments) {
  const Settings settings(arguments, ';');
  for (const auto& [option, value] : settings.all())
    if (const std::string why = refusal_of(option, value); !why.empty())
      return "--" + option + ": " + why;
  return {};
}

}  // namespace pipewright::models
