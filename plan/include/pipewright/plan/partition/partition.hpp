#pragma once

// A Partition cuts the layers into stages and puts each stage on a rank. Stage s holds the layers
// [boundaries[s], boundaries[s + 1]).

#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

struct Partition {
  std::vector<int> boundaries;     // first 0, last the number of layers
  std::vector<int> rank_of_stage;  //
  friend bool operator==(const Partition&, const Partition&) = default;
};

int stage_count(const Partition& partition);
int layer_count(const Partition& partition);

/// `[0, 2, 3]`.
std::string to_string(const std::vector<int>& boundaries);

/// One stage a rank, in order.
Partition one_stage_per_rank(std::vector<int> boundaries);

Json to_json(const Partition& partition);
Partition partition_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
