#pragma once

// What the stages of a traced pipeline cost, as a scenario and its costs, from which all else can
// be predicted.

#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/trace/explain/recognised_schedule.hpp"
#include "pipewright/trace/explain/traced_pipeline.hpp"

namespace pipewright::trace {

/// Means over the microbatches, in seconds.
struct TracedStage {
  int rank = 0;
  double forward = 0;
  double backward = 0;  // in one go, or both parts
  double input_gradient = 0, weight_gradient = 0;
  bool is_split = false;  // both parts were traced; else each is taken for half
  double total = 0;       // of all microbatches, of all kinds
};

/// Where a layer of the costs begins in what was traced.
struct TracedLayer {
  int stage = 0;
  int part = 0;               // of the stage, from 0: an operator, or an equal part
  int parts = 1;              // that the stage has
  std::string operator_name;  // "aten::linear"; empty: an equal part
};
/// "stage 1, operator 7 of 18 (aten::linear)", counted from 1.
std::string to_string(const TracedLayer& layer);

struct TracedCosts {
  std::vector<TracedStage> stages;
  /// What a transfer takes whose receiver was ready before it began: the median. 0: there is none.
  double transfer_s = 0;
  /// The model is a `measured` one, whose sizes no trace tells. Its layers' times are those of its
  /// operators in their order, in up to `pieces_of_stage` pieces of a stage, or equal parts of a
  /// stage where operators cannot be told. Memory is not known.
  plan::Scenario scenario;
  plan::LayerCosts costs;
  std::vector<TracedLayer> layers;
  bool layers_known = false;
  /// What the scenario supposes and no trace tells, in words.
  std::vector<std::string> assumptions;
};

inline constexpr int pieces_of_stage = 12;

TracedCosts traced_costs(const TracedPipeline& pipeline, const RecognisedSchedule& schedule);

}  // namespace pipewright::trace
