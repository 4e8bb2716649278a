#pragma once

// Finds transfers that share a link. `Simulator::run` gives every pair of ranks the whole
// bandwidth, so its answer is a lower bound if transfers overlap on a link.

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

/// Returns the overlaps in order of node. The list is empty if every transfer has its link to
/// itself: then the native answer is exact. Links are shared as the Cluster says: one card per node
/// for all transfers to other nodes, with separate directions; one bus per node for all transfers
/// inside it. All data-parallel replicas and tensor-parallel ranks of the ranks take part.
std::vector<Contention> shared_link_overlaps(const Structure& structure, const StepCosts& costs,
                                             const Times& times);

/// Returns one sentence: "the answer is a lower bound: …"; empty if there is no contention.
std::string in_words(const std::vector<Contention>& contentions, const Structure& structure);

}  // namespace pipewright::sim
