#pragma once

// A Partition divides the layers into stages. Stage s holds the layers [boundaries[s],
// boundaries[s+1]). The Placement of the Program gives the rank of each stage.

#include <string>
#include <variant>
#include <vector>

#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

struct Partition {
  std::vector<int> boundaries;  // first 0, last the number of layers
  friend bool operator==(const Partition&, const Partition&) = default;
};

int stage_count(const Partition& partition);
int layer_count(const Partition& partition);

/// Formats boundaries as `[0, 2, 3]`.
std::string to_string(const std::vector<int>& boundaries);

/// A requested partition: the quantity that it must balance (layer_weights.hpp), or its boundaries.
using PartitionChoice = std::variant<std::string, std::vector<int>>;

/// Throws InputError unless the boundaries divide the layers into `stages` stages, each with at
/// least one layer.
void require_boundaries(const std::vector<int>& boundaries, int stages, int layers);

/// A partition file: the partition, and the ranks of the stages on a Program's first route.
struct PlacedPartition {
  Partition partition;
  std::vector<int> rank_of_stage;
  friend bool operator==(const PlacedPartition&, const PlacedPartition&) = default;
};

Json to_json(const PlacedPartition& placed);
PlacedPartition partition_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
