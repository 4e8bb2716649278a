#pragma once

// A Partition cuts the layers into stages. Stage s holds the layers [boundaries[s],
// boundaries[s + 1]). The rank of a stage is told by the Placement of the Program.

#include <string>
#include <vector>

#include "pipewright/plan/json.hpp"

namespace pipewright::plan {

struct Partition {
  std::vector<int> boundaries;  // first 0, last the number of layers
  friend bool operator==(const Partition&, const Partition&) = default;
};

int stage_count(const Partition& partition);
int layer_count(const Partition& partition);

/// `[0, 2, 3]`.
std::string to_string(const std::vector<int>& boundaries);

/// The boundaries whose heaviest part is as light as possible, exactly; among those the most even
/// (least sum of squares), and among those the latest boundaries, as DeepSpeed breaks its ties.
/// Every part gets an item; with fewer items than parts each item is a part, and the last parts are
/// empty. About O(items) time. Throws InputError when there is no part, or a negative weight.
std::vector<int> balanced_boundaries(const std::vector<double>& weights, int parts);

/// Parts whose lengths differ by at most one, the longer ones first; the last ones are empty when
/// there are fewer items than parts. Throws InputError when there is no part.
std::vector<int> uniform_boundaries(int items, int parts);

/// A partition file: beside the partition it says where the stages of a Program's first route lie.
struct PlacedPartition {
  Partition partition;
  std::vector<int> rank_of_stage;
  friend bool operator==(const PlacedPartition&, const PlacedPartition&) = default;
};

Json to_json(const PlacedPartition& placed);
PlacedPartition partition_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
