#pragma once

// The stage costs of a transformer's training on a cluster, for the native simulation engine:
// analytic times of the layers, the head, the embedding, the transfers between stages, and the end
// of an iteration (exposed gradient reduction and parameter gathering, the optimizer step, and a
// fixed time).

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::search {

/// Writes the costs to `costs`, reusing its memory: one entry per stage. A rank represents all
/// devices that share a stage.
void set_step_costs(sim::StepCosts& costs, const plan::Cluster& cluster,
                    const plan::TransformerConfig& model, const plan::Cut& cut,
                    const models::TransformerTimes& times);

/// Returns true if `devices` devices do not fit into one node.
bool on_several_nodes(const plan::Cluster& cluster, int devices);
/// Throws plan::InputError if `devices` devices need several nodes but the cluster has only one.
/// `whose` is the subject of the message, such as the name of a run.
void require_nodes(const plan::Cluster& cluster, int devices, const std::string& whose);
sim::StepCosts step_costs(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                          const plan::Cut& cut);

/// Returns the busy seconds per iteration of a rank with these stages: their compute for all
/// `microbatches`, and the end of the iteration.
double busy_of(const sim::StepCosts& costs, const std::vector<int>& stages, int microbatches);

}  // namespace pipewright::search
