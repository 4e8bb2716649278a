#include "pipewright/plan/partition/partition.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::plan {

int stage_count(const Partition& partition) {
  assert(!partition.boundaries.empty());
  return static_cast<int>(partition.boundaries.size()) - 1;
}

int layer_count(const Partition& partition) { return partition.boundaries.back(); }

std::string to_string(const std::vector<int>& boundaries) {
  return fmt::format("[{}]", fmt::join(boundaries, ", "));
}

void require_boundaries(const std::vector<int>& boundaries, int stages, int layers) {
  const auto refuse = [&](const std::string& why) {
    return InputError(fmt::format("the boundaries {} {}", to_string(boundaries), why));
  };
  if (boundaries.empty() || boundaries.front() != 0)
    throw refuse("must begin with 0, the first layer");
  for (std::size_t stage = 0; stage + 1 < boundaries.size(); ++stage)
    if (boundaries[stage + 1] <= boundaries[stage])
      throw refuse(
          fmt::format("leave stage {} without a layer: each must be more than the one "
                      "before",
                      stage));
  if (boundaries.back() != layers)
    throw refuse(fmt::format("end with {}, but the model has {} layers: the last must be {}",
                             boundaries.back(), layers, layers));
  const auto found = static_cast<int>(boundaries.size()) - 1;
  if (found != stages)
    throw refuse(
        fmt::format("make {} stage{}, but the pipeline has {}: give {} boundaries, or what "
                    "they shall balance, such as profile",
                    found, found == 1 ? "" : "s", stages, stages + 1));
}

Json to_json(const PlacedPartition& placed) {
  return {{"format", "pipewright/partition/1"},
          {"boundaries", placed.partition.boundaries},
          {"rank_of_stage", placed.rank_of_stage}};
}

namespace {

void check_boundaries(JsonObject& root, const std::vector<int>& boundaries) {
  if (boundaries.size() < 2)
    return root.error("boundaries",
                      "at least two boundaries are needed: 0 and the last layer's end");
  if (boundaries.front() != 0)
    root.error("boundaries",
               fmt::format("the first boundary must be 0, not {}", boundaries.front()));
  for (std::size_t i = 1; i < boundaries.size(); ++i)
    if (boundaries[i] <= boundaries[i - 1])
      root.error("boundaries",
                 fmt::format("stage {} from {} to {} has no layer: boundaries must increase", i - 1,
                             boundaries[i - 1], boundaries[i]));
}

void check_ranks(JsonObject& root, const PlacedPartition& placed) {
  const auto& ranks = placed.rank_of_stage;
  const std::size_t stages = placed.partition.boundaries.size() - 1;
  if (ranks.size() != stages)
    return root.error("rank_of_stage", fmt::format("{} ranks are listed, but there are {} stages",
                                                   ranks.size(), stages));
  const std::set<int> used(ranks.begin(), ranks.end());
  for (int rank = 0; rank < *used.rbegin(); ++rank)
    if (!used.contains(rank))
      return root.error("rank_of_stage", fmt::format("rank {} has no stage, but rank {} has one",
                                                     rank, *used.rbegin()));
}

PlacedPartition read_partition(JsonObject& root) {
  PlacedPartition placed{.partition = {root.integers("boundaries", at_least(0))},
                         .rank_of_stage = root.integers("rank_of_stage", at_least(0))};
  // Elements that are not numbers were left out above, so the remaining ones cannot be checked.
  if (!root.diagnostics().empty())
    return placed;
  check_boundaries(root, placed.partition.boundaries);
  if (root.diagnostics().empty())
    check_ranks(root, placed);
  return placed;
}

}  // namespace

PlacedPartition partition_from_json(const JsonDocument& document) {
  return read_document<PlacedPartition>(document, "pipewright/partition/1", read_partition);
}

}  // namespace pipewright::plan
