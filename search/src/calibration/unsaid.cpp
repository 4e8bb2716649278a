#include "pipewright/search/calibration/unsaid.hpp"

#include <algorithm>
#include <cmath>

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/models/transformer/transformer_memory.hpp"

namespace pipewright::search {
namespace {

using models::MeasuredRun;
using plan::AttentionKind;

constexpr double ordered_hop_efficiency = 0.15;

bool tells_memory_alone(const MeasuredRun& run) { return run.peak_memory && !run.tells_attention; }

/// Returns the deviation of the runs' memory from the measurements, if they all use this attention.
double misfit(const plan::MachineConstants& constants, std::vector<MeasuredRun> runs,
              AttentionKind attention) {
  set_attention(runs, attention);
  double sum = 0;
  for (const MeasuredRun& run : runs)
    if (tells_memory_alone(run)) {
      const auto ranks = models::transformer_memory(run.training, run.cut);
      sum += std::abs(std::log(models::peak_of(ranks, constants) /
                               static_cast<double>(run.peak_memory->value)));
    }
  return sum;
}

}  // namespace

plan::Cluster cluster_of(const plan::Cluster& cluster, const std::vector<MeasuredRun>& runs) {
  plan::Cluster own = cluster;
  const auto names_one = [](const MeasuredRun& run) { return run.names_schedule; };
  if (std::none_of(runs.begin(), runs.end(), names_one))
    return own;
  own.machine = models::machine_of(cluster);
  double& efficiency = own.machine->constants.transfer_efficiency;
  if (efficiency == plan::MachineConstants{}.transfer_efficiency)
    efficiency = ordered_hop_efficiency;
  return own;
}

AttentionKind attention_of(const plan::Cluster& cluster, const std::vector<MeasuredRun>& runs) {
  if (std::none_of(runs.begin(), runs.end(), tells_memory_alone))
    return AttentionKind::Scores;
  const plan::MachineConstants constants = models::machine_of(cluster).constants;
  return misfit(constants, runs, AttentionKind::Fused) <
                 misfit(constants, runs, AttentionKind::Scores)
             ? AttentionKind::Fused
             : AttentionKind::Scores;
}

void set_attention(std::vector<MeasuredRun>& runs, AttentionKind attention) {
  for (MeasuredRun& run : runs)
    if (!run.tells_attention)
      run.training.attention = attention;
}

}  // namespace pipewright::search
