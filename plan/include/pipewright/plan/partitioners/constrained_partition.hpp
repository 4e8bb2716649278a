#pragma once

// The most balanced partition under constraints: an uneven first and last stage, borders that must
// be there, layers that must share a stage, and a cap on the memory of each rank.

#include <functional>
#include <optional>
#include <vector>

#include "pipewright/plan/model/model.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// The layers [begin, end).
struct LayerRange {
  int begin = 0;
  int end = 0;
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

struct PartitionRequest {
  std::vector<double> weights;  // one for each layer
  int stages = 1;
  int ranks = 0;             // stage s lies on rank s modulo ranks; 0: every stage on its own
  std::optional<int> first;  // layers of the first stage
  std::optional<int> last;   // layers of the last stage
  std::vector<int> borders;  // a stage ends and the next begins there
  std::vector<LayerRange> together;
  std::optional<Bytes> memory_cap;  // each rank's, over all of its stages
  /// What a stage of these layers needs. Must not fall when layers are added.
  std::function<Bytes(int stage, LayerRange layers)> memory;
};

/// The boundaries that `balanced_boundaries` would choose among those that meet the constraints:
/// lightest bottleneck, then least sum of squares, then latest borders. Exact: O(stages · layers²)
/// when ranks hold one stage, by branch and bound when they share a cap among several. Throws
/// Infeasible naming the tightest constraint, InputError when a constraint speaks of layers that
/// are not there, or when branch and bound would take too long.
std::vector<int> constrained_boundaries(const PartitionRequest& request);

/// For each key that several layers are tied by, the layers from the first to the last of them.
std::vector<LayerRange> tied_ranges(const Model& model);

}  // namespace pipewright::plan
