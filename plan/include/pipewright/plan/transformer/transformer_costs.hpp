#pragma once

// A transformer's layers as costs, from sizes: what each takes and keeps on a device that has a
// shard of it. With them a scenario says what the planner's times and memory say.

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/transformer/transformer_times.hpp"

namespace pipewright::plan {

inline constexpr const char* analytic_software = "analytic";

/// Where nothing is known of the machine, the constants are those of any.
Machine machine_of(const Cluster& cluster);
/// What a machine knows of a class of layers; null: nothing.
const LayerClass* class_in(const std::vector<LayerClass>& classes, const LayerClass& wanted);
LayerFactors factors_of(const LayerClass& known);
/// At the constants of the machine, with the factors of the class where it is known.
TransformerTimes priced(const TransformerWork& work, const Machine& machine,
                        const LayerClass& layers);
/// The same for a cut on a cluster, from its start.
TransformerTimes times_on(const Cluster& cluster, const TransformerTraining& training,
                          const Cut& cut);

/// Throws InputError where the cluster does not say what times need of its device.
void require_figures(const Cluster& cluster);

/// Figures of the shard that a rank of the cut has: what its shards pass on among each other stands
/// beside the times, gradients are summed by the Program. Throws InputError where the cluster lacks
/// a figure or the cut does not fit.
LayerCosts transformer_costs(const Cluster& cluster, const TransformerTraining& training,
                             const Cut& cut);

}  // namespace pipewright::plan
