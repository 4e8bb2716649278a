#pragma once

// The stage costs of a transformer's training on a cluster, for the native engine: analytic times
// of the layers, the head and the embedding, transfers, and the end of an iteration.

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::search {

/// Writes to `costs`, reusing its memory. There is one entry per stage; a rank stands for all
/// devices that share a stage.
void set_step_costs(sim::StepCosts& costs, const plan::Cluster& cluster,
                    const plan::TransformerConfig& model, const plan::Cut& cut,
                    const models::TransformerTimes& times);

/// Returns true if this number of devices needs more than one node.
bool on_several_nodes(const plan::Cluster& cluster, int devices);
/// Throws plan::InputError if `devices` devices need several nodes and the cluster has one. `whose`
/// names them in the message.
void require_nodes(const plan::Cluster& cluster, int devices, const std::string& whose);
sim::StepCosts step_costs(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                          const plan::Cut& cut);

/// Returns the busy seconds of a rank with these stages in an iteration: its compute, and the end
/// of the iteration.
double busy_of(const sim::StepCosts& costs, const std::vector<int>& stages, int microbatches);

}  // namespace pipewright::search
