#pragma once

// A transformer's layers as costs, from sizes: what each takes and keeps on a device that has a
// shard of it. With them a scenario says what the planner's times and memory say.

#include "pipewright/models/transformer/transformer_times.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"

namespace pipewright::models {

inline constexpr const char* analytic_software = "analytic";

/// Where nothing is known of the machine, the constants are those of any.
plan::Machine machine_of(const plan::Cluster& cluster);
/// What a machine knows of a class of layers; null: nothing.
const plan::LayerClass* class_in(const std::vector<plan::LayerClass>& classes,
                                 const plan::LayerClass& wanted);
LayerFactors factors_of(const plan::LayerClass& known);
/// At the constants of the machine, with the factors of the class where it is known.
TransformerTimes priced(const TransformerWork& work, const plan::Machine& machine,
                        const plan::LayerClass& layers);
/// The same for a cut on a cluster, from its start.
TransformerTimes times_on(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                          const plan::Cut& cut);

/// Throws InputError where the cluster does not say what times need of its device.
void require_figures(const plan::Cluster& cluster);

/// Figures of the shard that a rank of the cut has: what its shards pass on among each other stands
/// beside the times, gradients are summed by the Program. Throws InputError where the cluster lacks
/// a figure or the cut does not fit.
plan::LayerCosts transformer_costs(const plan::Cluster& cluster,
                                   const plan::TransformerTraining& training, const plan::Cut& cut);

}  // namespace pipewright::models
