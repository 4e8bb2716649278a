#pragma once

// What the stages of a transformer's training cost on a cluster, for the native engine: analytic
// times of the layers, the head and the embedding, transfers, and what ends an iteration.

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::search {

/// Writes over `costs`, whose memory is used again. One entry a stage; a rank is all devices that
/// share a stage.
void set_step_costs(sim::StepCosts& costs, const plan::Cluster& cluster,
                    const plan::TransformerConfig& model, const plan::Cut& cut,
                    const models::TransformerTimes& times);

/// Whether so many devices are on more than one node.
bool on_several_nodes(const plan::Cluster& cluster, int devices);
/// Throws plan::InputError where `whose` devices are on several nodes and the cluster has one.
void require_nodes(const plan::Cluster& cluster, int devices, const std::string& whose);
sim::StepCosts step_costs(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                          const plan::Cut& cut);

/// What a rank with these stages does in an iteration: compute, and what ends it. Seconds.
double busy_of(const sim::StepCosts& costs, const std::vector<int>& stages, int microbatches);

}  // namespace pipewright::search
