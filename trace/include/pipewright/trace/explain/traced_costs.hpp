#pragma once

// Converts a traced pipeline into a scenario and its layer costs, so that variants of it can be
// predicted.

#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/trace/explain/recognized_schedule.hpp"
#include "pipewright/trace/explain/traced_pipeline.hpp"

namespace pipewright::trace {

/// Mean times over the microbatches, in seconds.
struct TracedStage {
  int rank = 0;
  double forward = 0;
  double backward = 0;  // whole backward, fused or in two halves
  double input_gradient = 0, weight_gradient = 0;
  bool is_split = false;  // both halves were traced; otherwise each is taken as half of `backward`
  double total = 0;       // sum over all microbatches and kinds
};

/// The position, within the traced stages, at which a layer of the costs begins.
struct TracedLayer {
  int stage = 0;
  int part = 0;               // index within the stage, from 0: an operator or an equal part
  int parts = 1;              // number of parts in the stage
  std::string operator_name;  // "aten::linear"; empty: an equal part
};
/// Formats the position as "stage 1, operator 7 of 18 (aten::linear)". Stages count from 0,
/// operators from 1.
std::string to_string(const TracedLayer& layer);

struct TracedCosts {
  std::vector<TracedStage> stages;
  /// Median duration of the transfers whose receiver was ready before they began. If there are
  /// none, the shortest transfer; 0 without transfers.
  double transfer_s = 0;
  /// The model is a `measured` one, because no trace records its sizes. Its layers' times are those
  /// of the traced operators in order, merged into at most `pieces_of_stage` pieces per stage. If
  /// operators cannot be told apart, the stage is divided into equal parts. Memory is unknown.
  plan::Scenario scenario;
  plan::LayerCosts costs;
  std::vector<TracedLayer> layers;
  bool layers_known = false;
  /// Assumptions of the scenario that no trace can confirm, as sentences.
  std::vector<std::string> assumptions;
};

inline constexpr int pieces_of_stage = 12;

TracedCosts traced_costs(const TracedPipeline& pipeline, const RecognizedSchedule& schedule);

}  // namespace pipewright::trace
