#pragma once

// What the stages of a transformer's training cost on a cluster, for the native engine: analytic
// times of the layers, the head and the embedding, transfers, and what ends an iteration.

#include "pipewright/plan/transformer/transformer_times.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::sim {

/// Writes over `costs`, whose memory is used again. One entry a stage; a rank is all devices that
/// share a stage.
void set_step_costs(StepCosts& costs, const plan::Cluster& cluster,
                    const plan::TransformerConfig& model, const plan::Cut& cut,
                    const plan::TransformerTimes& times);

/// Whether so many devices are on more than one node.
bool on_several_nodes(const plan::Cluster& cluster, int devices);
/// Throws plan::InputError where the cluster does not say what times need of its device.
void require_figures(const plan::Cluster& cluster);
/// Throws plan::InputError where `whose` devices are on several nodes and the cluster has one.
void require_nodes(const plan::Cluster& cluster, int devices, const std::string& whose);
/// What a machine knows of a class of layers; null: nothing.
const plan::LayerClass* class_in(const std::vector<plan::LayerClass>& classes,
                                 const plan::LayerClass& wanted);
plan::LayerFactors factors_of(const plan::LayerClass& known);

/// Where nothing is known of the machine, the constants are those of any.
plan::Machine machine_of(const plan::Cluster& cluster);
/// At the constants of the machine, with the factors of the class where it is known.
plan::TransformerTimes priced(const plan::TransformerWork& work, const plan::Machine& machine,
                              const plan::LayerClass& layers);
/// The same for a cut on a cluster, from its start.
plan::TransformerTimes times_on(const plan::Cluster& cluster,
                                const plan::TransformerTraining& training, const plan::Cut& cut);

StepCosts step_costs(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                     const plan::Cut& cut);

/// What a rank with these stages does in an iteration: compute, and what ends it. Seconds.
double busy_of(const StepCosts& costs, const std::vector<int>& stages, int microbatches);

}  // namespace pipewright::sim
