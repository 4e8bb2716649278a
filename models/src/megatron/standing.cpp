#include "standing.hpp"

#include <algorithm>

#include "saved_activations.hpp"
#include "software_dates.hpp"

namespace pipewright::models::megatron {
namespace {

constexpr long long mebibyte = 1LL << 20;

long long shared_out(long long bytes, long long devices) { return (bytes + devices - 1) / devices; }

/// Returns the bytes of the optimizer's shard. The distributed optimizer partitions its state over
/// all replicas, and that of experts over the replicas of the same experts.
long long optimizer_bytes(const MegatronRun& run, const Parameters& parameters, long long each) {
  if (run.cut.zero == 0)
    return each * parameters.all();
  const long long devices = std::max(1, run.copies() / run.optimizer_groups);
  return shared_out(each * parameters.dense, devices) +
         shared_out(each * parameters.experts, std::max(1, run.cut.expert_copies()));
}

int bytes_of_weight(const MegatronRun& run) {
  return run.precision == MegatronPrecision::Full ? 4 : 2;
}

/// Returns the number of product weights, which fp8 training casts.
long long quantized(const Parameters& parameters) {
  return parameters.all() - parameters.unquantized;
}
int float8_copies(const MegatronRun& run) { return run.float8_one_copy ? 1 : 2; }

/// Returns the bytes of LibTorch's cuBLAS workspaces, one per handle and stream: one for the
/// forward's thread and one for the backward's. Its default is 32 MiB on Hopper and later, else
/// :4096:2:16:8.
long long cublas_workspaces(const MegatronRun& run) {
  const bool large =
      run.gpu == GpuKind::Hopper ||
      (run.gpu == GpuKind::Blackwell && !run.one_node && run.date >= large_blackwell_workspace);
  const long long own = large ? 32 * mebibyte : (2 * 4096 + 8 * 16) * 1024LL;
  return 2 * (run.cublas_workspace > 0 ? run.cublas_workspace : own);
}

bool has_experts(const std::vector<RankStage>& stages) {
  const auto of_layer = [](const Layer& layer) {
    return std::find(layer.parts.begin(), layer.parts.end(), Part::Experts) != layer.parts.end();
  };
  return std::any_of(stages.begin(), stages.end(), [&](const RankStage& stage) {
    return std::any_of(stage.layers.begin(), stage.layers.end(), of_layer);
  });
}

/// Returns the bytes of TransformerEngine's workspaces: 4 MiB, from Hopper on 32 MiB, for each
/// overlapping stream. Grouped products use four more streams. Experts use them even if the other
/// layers are Megatron's own.
long long engine_workspaces(const MegatronRun& run, const std::vector<RankStage>& stages) {
  const bool own_layers = attention_of(run) == AttentionBackend::Local;
  const bool experts = has_experts(stages);
  if (own_layers && !experts)
    return 0;
  const long long each = (run.gpu == GpuKind::Ampere ? 4 : 32) * mebibyte;
  return each * (run.overlap_streams + (experts && run.grouped_experts ? 4 : 0));
}

/// Returns the size of Megatron's GlobalMemoryBuffer, which is that of its largest use: scores
/// before the softmax in Megatron's own attention, or gathered tokens before the head.
long long global_buffer(const MegatronRun& run) {
  const plan::TransformerConfig& model = run.training.model;
  const long long whole = tokens_of(run).whole;
  const long long gathered = run.cut.sequence_parallel ? 2 * whole * model.hidden : 0;
  const long long scores = attention_of(run) == AttentionBackend::Local
                               ? 2 * whole * run.training.sequence * model.heads / run.cut.tensor
                               : 0;
  return std::max(gathered, scores);
}

/// Returns the bytes lost because LibTorch does not split off the last MiB of a block: optimizer
/// states of a layer's matrices lie in blocks that are too large by 0.7 MiB per layer on average.
long long unsplit(const MegatronRun& run, const std::vector<RankStage>& stages) {
  if (run.expandable_segments)
    return 0;
  long long layers = 0;
  for (const RankStage& stage : stages)
    layers += static_cast<long long>(stage.layers.size());
  return layers * 7 * mebibyte / 10;
}

}  // namespace

void add_model(MemoryByName& held, const MegatronRun& run, const Parameters& parameters) {
  long long weights = bytes_of_weight(run) * parameters.all();
  if (run.float8_parameters)
    weights += (float8_copies(run) - bytes_of_weight(run)) * quantized(parameters);
  held.add("parameters", weights);
  held.add("gradients", run.gradient_bytes * parameters.all());
}

long long main_weights(const MegatronRun& run, const Parameters& parameters) {
  return run.precision == MegatronPrecision::Full
             ? 0
             : optimizer_bytes(run, parameters, run.main_weight_bytes);
}

long long optimizer_state(const MegatronRun& run, const Parameters& parameters) {
  return optimizer_bytes(run, parameters, run.state_bytes);
}

long long wide_gradients(const MegatronRun& run, const Parameters& parameters) {
  return run.gradient_bytes < 4 ? optimizer_bytes(run, parameters, 4) : 0;
}

void add_set_aside(MemoryByName& held, const MegatronRun& run, const std::vector<RankStage>& stages,
                   const Parameters& parameters) {
  held.add("cuBLAS workspaces", cublas_workspaces(run));
  held.add("TransformerEngine workspaces", engine_workspaces(run, stages));
  if (run.fused_weight_gradients && run.date >= shared_stand_ins)
    held.add("stand-ins of weight gradients", bytes_of_weight(run) * distinct_weights(run, stages));
  if (run.precision == MegatronPrecision::Float8 && !run.float8_parameters)
    held.add("8-bit weights", float8_copies(run) * quantized(parameters));
  held.add("global buffer", global_buffer(run));
  held.add("unsplit blocks", unsplit(run, stages));
}

long long stage_inputs(const MegatronRun& run, const std::vector<RankStage>& stages) {
  long long held = 0;
  for (const RankStage& stage : stages)
    if (!stage.embedding)
      held += 2 * hidden_state(run);
  return held;
}

}  // namespace pipewright::models::megatron
