// The fields of torchtitan's configurations: JobConfig in torchtitan/config/job_config.py of 0.2.2,
// and Trainer.Config in torchtitan/trainer.py with its sections of 0.3.0.

#include "trainers/torchtitan_fields.hpp"

#include <vector>

namespace pipewright::models {
namespace {

using enum FieldUse;

/// Sizes, degrees, schedule, stages and recomputation.
constexpr FieldRule read_fields[]{
    {"training.local_batch_size"},
    {"training.global_batch_size"},
    {"training.seq_len"},
    {"training.max_norm"},
    {"training.mixed_precision_param"},
    {"parallelism.data_parallel_replicate_degree"},
    {"parallelism.data_parallel_shard_degree"},
    {"parallelism.fsdp_reshard_after_forward"},
    {"parallelism.tensor_parallel_degree"},
    {"parallelism.pipeline_parallel_degree"},
    {"parallelism.module_fqns_per_model_part"},
    {"parallelism.pipeline_parallel_first_stage_less_layers"},
    {"parallelism.pipeline_parallel_last_stage_less_layers"},
    {"parallelism.pipeline_parallel_layers_per_stage"},
    {"parallelism.pipeline_parallel_schedule"},
    {"parallelism.pipeline_parallel_schedule_csv"},
    {"parallelism.pipeline_parallel_microbatch_size"},
    {"parallelism.context_parallel_degree"},
    {"parallelism.expert_parallel_degree"},
};

/// Model, data and kernels are the scenario's. Logs, checkpoints, evaluation and the schedule of
/// the learning rate are no part of a step.
constexpr FieldRule other_fields[]{
    {"training.steps", Irrelevant},
    {"training.mixed_precision_reduce", Irrelevant},  // float32 is its only value
    {"training.gc_freq", Irrelevant},
    {"training.gc_debug", Irrelevant},
    {"training.enable_cpu_offload", Fixed, "[false]", "parameters in CPU memory are not predicted"},
    {"training.dtype", Fixed, R"(["float32"])",
     "parameters, gradients and optimizer states in bfloat16 are not predicted"},
    {"parallelism.context_parallel_load_balancer", Fixed, R"(["headtail"])",
     "context-parallel ranks are predicted with equal work (\"headtail\")"},
    {"lr_scheduler.*", Irrelevant},
    {"metrics.*", Irrelevant},
    {"checkpoint.*", Irrelevant},
    {"activation_checkpoint.preserve_rng_state", Irrelevant},
    {"activation_checkpoint.determinism_check", Irrelevant},
    {"activation_checkpoint.debug", Fixed, "[false]", "its debug mode slows recomputation down"},
    {"activation_checkpoint.memory_budget", Irrelevant},  // of a mode that is rejected
    {"activation_checkpoint.visualize_memory_budget_pareto", Irrelevant},
    {"comm.mode", Fixed, R"(["default"])", "other modes do not train on a cluster"},
    {"comm.*", Irrelevant},
    {"debug.*", Irrelevant},
};

constexpr FieldRule toml_fields_only[]{
    {"activation_checkpoint.mode"},
    {"optimizer.name"},
    {"optimizer.lr"},
    {"optimizer.weight_decay"},
    {"optimizer.beta1", Irrelevant},
    {"optimizer.beta2", Irrelevant},
    {"optimizer.eps", Irrelevant},
    {"optimizer.implementation", Irrelevant},
    {"optimizer.early_step_in_backward", Fixed, "[false]",
     "optimizer steps within the backward are not predicted"},
    {"activation_checkpoint.selective_ac_option", Irrelevant},  // of a mode that is rejected
    {"activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns", Irrelevant},
    {"activation_checkpoint.early_stop", Fixed, "[false]",
     "whole blocks are predicted to be recomputed"},
    {"parallelism.disable_loss_parallel", Fixed, "[false]",
     "the loss is predicted on a partitioned vocabulary"},
    {"parallelism.enable_async_tensor_parallel", Fixed, "[false]",
     "tensor-parallel communication is not predicted to overlap with compute"},
    {"parallelism.pipeline_parallel_expert_parallel_overlap", Fixed, "[true]",
     "DualPipeV is predicted with overlapped pairs"},
    {"parallelism.context_parallel_rotate_method", Fixed, R"(["allgather"])",
     "context parallelism is predicted with all-gathers"},
    {"parallelism.expert_tensor_parallel_degree", Fixed, "[1]",
     "experts are predicted without tensor parallelism"},
    {"parallelism.expert_parallel_comm_backend", Fixed, R"(["standard"])",
     "expert parallelism is predicted with all-to-alls of NCCL"},
    {"model.converters", Fixed, "[[]]", "products in 8 bits are set in the scenario's model"},
    {"model.*", Irrelevant},
    {"job.*", Irrelevant},
    {"profiling.*", Irrelevant},
    {"training.dataset", Irrelevant},
    {"training.dataset_path", Irrelevant},
    {"training.dataloader.*", Irrelevant},
    {"compile.*", Irrelevant},
    {"quantize.*", Irrelevant},  // of converters, which are rejected
    {"memory_estimation.*", Irrelevant},
    {"fault_tolerance.enable", Fixed, "[false]", "replicas of torchft are not predicted"},
    {"fault_tolerance.*", Irrelevant},
    {"experimental.*", Irrelevant},
    {"validation.*", Irrelevant},
};

constexpr FieldRule python_fields_only[]{
    {"activation_checkpoint"},
    {"optimizer.param_groups"},
    {"training.disable_cuda_graphs"},
    {"parallelism.enable_sequence_parallel"},
    {"activation_checkpoint.force_recompute_mm_shapes_by_fqns", Irrelevant},
    {"optimizer.implementation", Fixed, R"(["fused", "foreach", "for-loop"])",
     "optimizer states in bfloat16 are not predicted"},
    {"optimizer.optimizer_factory_kwargs_by_name", Irrelevant},  // of DistMuon, which is rejected
    {"parallelism.enable_fsdp_symm_mem", Fixed, "[false]",
     "collectives in symmetric memory are not predicted"},
    {"parallelism.spmd_backend", Irrelevant},  // the same placement in another implementation
    {"parallelism.context_parallel_ptrr_mask_key", Irrelevant},  // of a balancer that is rejected
    {"compile.enable_async_tensor_parallel", Fixed, "[false]",
     "tensor-parallel communication is not predicted to overlap with compute"},
    {"compile.*", Irrelevant},
    {"debug.detect_anomaly", Fixed, "[false]", "its checks slow the backward down"},
    {"debug.spmd_typechecking", Fixed, "[false]", "its checks slow a step down"},
    {"debug.batch_invariant", Fixed, "[false]", "torchtitan does not train in this mode"},
    {"override.imports", Fixed, "[[]]", "parts that other code replaces are not predicted"},
    {"model_spec.converters", Fixed, "[[]]",
     "products in fewer bits are set in the scenario's model"},
    {"model_spec.moe_comm_backend", Fixed, R"(["standard"])",
     "expert parallelism is predicted with all-to-alls of NCCL"},
    {"model_spec.*", Irrelevant},
    {"loss.*", Irrelevant},
    {"hf_assets_path", Irrelevant},
    {"dump_folder", Irrelevant},
    {"profiler.*", Irrelevant},
    {"tokenizer.*", Irrelevant},
    {"dataloader.*", Irrelevant},
    {"validator.*", Irrelevant},
};

std::vector<FieldRule> rules_with(std::span<const FieldRule> of_version) {
  std::vector<FieldRule> rules(std::begin(read_fields), std::end(read_fields));
  rules.insert(rules.end(), of_version.begin(), of_version.end());
  rules.insert(rules.end(), std::begin(other_fields), std::end(other_fields));
  return rules;
}

}  // namespace

std::string name_of(TorchtitanVersion version) {
  return version == TorchtitanVersion::V02 ? "torchtitan 0.2" : "torchtitan 0.3";
}

std::span<const FieldRule> torchtitan_rules(TorchtitanVersion version) {
  static const std::vector<FieldRule> toml = rules_with(toml_fields_only);
  static const std::vector<FieldRule> python = rules_with(python_fields_only);
  return version == TorchtitanVersion::V02 ? toml : python;
}

}  // namespace pipewright::models
