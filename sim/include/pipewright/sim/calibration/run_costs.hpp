#pragma once

// What the stages of a training run cost on a cluster, for the native engine: analytic times of the
// layers, the head and the embedding, transfers, and what ends an iteration.

#include "pipewright/plan/runs/transformer_times.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::sim {

/// Writes over `costs`, whose memory is used again. One entry a stage; a rank is all devices that
/// share a stage.
void set_run_costs(StepCosts& costs, const plan::Cluster& cluster, const plan::TrainingRun& run,
                   const plan::TransformerWork& work, const plan::MachineConstants& constants,
                   const plan::LayerFactors& factors);

/// Whether the run's devices are on more than one node.
bool on_several_nodes(const plan::Cluster& cluster, const plan::TrainingRun& run);
/// Throws plan::InputError where the cluster does not say what the times of these runs need.
void require_figures(const plan::Cluster& cluster, const std::vector<plan::TrainingRun>& runs);
/// What a machine knows of the run's class of layers; null: nothing.
const plan::LayerClass* class_in(const std::vector<plan::LayerClass>& classes,
                                 const plan::TrainingRun& run);
plan::LayerFactors factors_of(const plan::LayerClass& known);
/// Those of its class; where that is not known, none.
plan::LayerFactors factors_in(const std::vector<plan::LayerClass>& classes,
                              const plan::TrainingRun& run);

/// A run at the prices of its cluster's own machine.
struct PricedRun {
  plan::TransformerWork work;
  plan::TransformerTimes times;
  StepCosts steps;
};
PricedRun priced(const plan::Cluster& cluster, const plan::TrainingRun& run);

/// What a rank with these stages does in an iteration: compute, and what ends it. Seconds.
double busy_of(const StepCosts& costs, const std::vector<int>& stages, int microbatches);

}  // namespace pipewright::sim
