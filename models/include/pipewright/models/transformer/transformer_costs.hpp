#pragma once

// Costs of a transformer's layers from sizes: time and memory on a device with one tensor-parallel
// rank's part. With them a scenario predicts the same times and memory as the planner.

#include "pipewright/models/transformer/transformer_times.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"

namespace pipewright::models {

inline constexpr const char* analytic_software = "analytic";

/// Returns the cluster's machine. If none is given, its constants are generic guesses.
plan::Machine machine_of(const plan::Cluster& cluster);
/// Returns the machine's calibration of a class of layers, or null if it has none.
const plan::LayerClass* class_in(const std::vector<plan::LayerClass>& classes,
                                 const plan::LayerClass& wanted);
LayerFactors factors_of(const plan::LayerClass& known);
/// Prices the work with the machine's constants and the factors of the class, if it is calibrated.
TransformerTimes priced(const TransformerWork& work, const plan::Machine& machine,
                        const plan::LayerClass& layers);
/// Counts and prices a cut on a cluster.
TransformerTimes times_on(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                          const plan::Cut& cut);

/// Throws InputError if the cluster lacks figures of its device that times need.
void require_figures(const plan::Cluster& cluster);

/// Returns the costs of one tensor-parallel rank's part of each layer. Communication within the
/// layer is listed separately from the times; gradients are reduced by the Program. Throws
/// InputError if the cluster lacks a figure or if the cut does not fit.
plan::LayerCosts transformer_costs(const plan::Cluster& cluster,
                                   const plan::TransformerTraining& training, const plan::Cut& cut);

}  // namespace pipewright::models
