#pragma once

// The most balanced partition under constraints: fixed sizes of the first and last stage, mandatory
// boundaries, layers that must share a stage, and a memory limit for each rank.

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

/// The weights of a partition and its constraints.
struct PartitionRequest {
  std::vector<double> weights;  // one per layer
  int stages = 1;
  int ranks = 0;             // stage s is on rank s modulo ranks; 0: each stage on its own rank
  std::optional<int> first;  // layers of the first stage
  std::optional<int> last;   // layers of the last stage
  std::vector<int> borders;  // mandatory stage boundaries
  std::vector<LayerRange> together;
  std::optional<Bytes> memory_cap;  // of each rank, over all of its stages
  /// Returns the memory of a stage with these layers. Adding layers must not reduce it.
  std::function<Bytes(int stage, LayerRange layers)> memory;
};

/// Returns the boundaries that `balanced_boundaries` would choose among those that meet the
/// constraints: the lightest bottleneck, then the smallest sum of squares, then the latest
/// boundaries. Exact: O(stages · layers²) if each rank has one stage; branch and bound if several
/// stages share a rank's limit. Throws Infeasible that names the tightest constraint, or InputError
/// if a constraint refers to missing layers or if branch and bound would take too long.
std::vector<int> constrained_boundaries(const PartitionRequest& request);

/// Returns, for each key of a tied weight, the range from the first to the last layer that shares
/// it.
std::vector<LayerRange> tied_ranges(const Model& model);

}  // namespace pipewright::plan
