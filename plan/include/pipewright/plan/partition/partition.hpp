#pragma once

// A Partition cuts the layers into stages. Stage s holds the layers [boundaries[s],
// boundaries[s + 1]). The rank of a stage is told by the Placement of the Program.

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

/// `[0, 2, 3]`.
std::string to_string(const std::vector<int>& boundaries);

/// How somebody asks for a partition: by what it shall balance (layer_weights.hpp), or by its
/// boundaries.
using PartitionChoice = std::variant<std::string, std::vector<int>>;

/// Refuses boundaries that are not those of so many stages, each with a layer. Throws InputError.
void require_boundaries(const std::vector<int>& boundaries, int stages, int layers);

/// A partition file: beside the partition it says where the stages of a Program's first route lie.
struct PlacedPartition {
  Partition partition;
  std::vector<int> rank_of_stage;
  friend bool operator==(const PlacedPartition&, const PlacedPartition&) = default;
};

Json to_json(const PlacedPartition& placed);
PlacedPartition partition_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
