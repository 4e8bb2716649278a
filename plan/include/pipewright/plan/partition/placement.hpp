#pragma once

// Which rank runs which stage. A route lists the rank of every stage, and a microbatch takes one
// route through the model. Most schedules have a single route; bidirectional ones have several,
// and each rank then holds one copy of a stage's parameters for every route that passes through
// it. Four ranks, one direction and two:
//
//   1f1b       route 0: 0 1 2 3
//   dualpipe   route 0: 0 1 2 3    route 1: 3 2 1 0

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::plan {

struct Placement {
  std::vector<std::vector<int>> routes;  // the rank of each stage, -1 where no rank runs it
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
  /// Whether a rank holds a stage, on any route.
  bool holds(int rank, int stage) const;
  /// The stages that a rank holds, in rising order.
  std::vector<int> stages_on(int rank) const;
  /// The ranks that hold a stage, each once, in rising order. More than one: copies, whose
  /// gradients are reduced.
  std::vector<int> ranks_of(int stage) const;
};

/// A placement with one route.
Placement one_route(std::vector<int> rank_of_stage);

/// Stage s on rank s mod P, as interleaved schedules place them.
std::vector<int> loop_placement(int ranks, int stages);

/// Down and up again: rank r holds stages r, 2P - 1 - r, 2P + r, … (`stages` a multiple of
/// `ranks`; throws InputError otherwise).
std::vector<int> v_placement(int ranks, int stages);

/// Reads the stages of each rank, "0:[0,1,4], 1:[2,3]", into the rank of each stage. Ranks may be
/// uneven; every stage needs one rank. Throws InputError that says which has none, or two.
std::vector<int> parse_placement(std::string_view text);

/// The other direction: the stages of each rank.
std::vector<std::vector<int>> stages_of_rank(const std::vector<int>& rank_of_stage, int ranks);

}  // namespace pipewright::plan
