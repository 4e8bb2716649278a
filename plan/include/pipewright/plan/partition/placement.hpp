#pragma once

// The rank of each stage. A route lists the rank of every stage, and a microbatch takes one route
// through the model. Most schedules have a single route; bidirectional ones have several, and each
// rank then holds one copy of a stage's parameters for every route that passes through it. For
// example, with four ranks, in one direction and in two:
//
//   1f1b       route 0: 0 1 2 3
//   dualpipe   route 0: 0 1 2 3    route 1: 3 2 1 0

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::plan {

struct Placement {
  std::vector<std::vector<int>> routes;  // the rank of each stage; -1 if no rank runs it
  std::vector<int> route_of_microbatch;  // empty: all take route 0
  friend bool operator==(const Placement&, const Placement&) = default;

  int stage_count() const { return routes.empty() ? 0 : static_cast<int>(routes.front().size()); }
  int route_of(int microbatch) const {
    return route_of_microbatch.empty() ? 0
                                       : route_of_microbatch[static_cast<std::size_t>(microbatch)];
  }
  int rank_of(int stage, int microbatch) const {
    return routes[static_cast<std::size_t>(route_of(microbatch))][static_cast<std::size_t>(stage)];
  }
  bool is_bidirectional() const { return routes.size() > 1; }
  /// Returns true if the rank holds the stage on any route.
  bool holds(int rank, int stage) const;
  /// Returns the stages that a rank holds, in ascending order.
  std::vector<int> stages_on(int rank) const;
  /// Returns the distinct ranks that hold a stage, in ascending order. Several ranks hold copies
  /// whose gradients are reduced.
  std::vector<int> ranks_of(int stage) const;
};

/// A placement with one route.
Placement one_route(std::vector<int> rank_of_stage);

/// Returns the placement of interleaved schedules: stage s is on rank s mod P.
std::vector<int> loop_placement(int ranks, int stages);

/// Returns the zigzag placement: rank r holds stages r, 2P - 1 - r, 2P + r, … Throws InputError
/// unless `stages` is a multiple of `ranks`.
std::vector<int> v_placement(int ranks, int stages);

/// Parses the stages of each rank, "0:[0,1,4], 1:[2,3]", into the rank of each stage. Ranks may
/// have different numbers of stages. Throws InputError that names a stage with no rank or with two.
std::vector<int> parse_placement(std::string_view text);

/// The inverse: returns the stages of each rank.
std::vector<std::vector<int>> stages_of_rank(const std::vector<int>& rank_of_stage, int ranks);

}  // namespace pipewright::plan
