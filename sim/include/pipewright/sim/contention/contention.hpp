#pragma once

// Where transfers share a link: `Simulator::run` gives every pair of ranks the whole bandwidth, so
// where they overlap on one its answer is a lower bound.

#include <string>
#include <vector>

#include "pipewright/sim/structure/durations.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// Transfers that overlap on one shared link.
struct Contention {
  std::string link;        // "the network card of node 2, outgoing"
  int most = 0;            // transfers at once
  double seconds = 0;      // during which there is more than one
  double first = 0;        // when it begins
  int one = 0, other = 0;  // the first two events that overlap
};

/// In order of node. Empty where every transfer has its link to itself: then the native answer is
/// exact. Links are shared as the Cluster says: one card per node for all transfers to other
/// nodes, its two directions apart; one bus per node for all transfers inside it. All
/// All copies and shards of the ranks take part.
std::vector<Contention> shared_link_overlaps(const Structure& structure, const StepCosts& costs,
                                             const Times& times);

/// One sentence: "the answer is a lower bound: …"; empty for no contention.
std::string in_words(const std::vector<Contention>& contentions, const Structure& structure);

}  // namespace pipewright::sim
