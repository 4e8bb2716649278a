// Topologies: the mappings from ranks to coordinates and back are inverse.

#include <algorithm>
#include <string_view>

#include "json_text.hpp"
#include "pipewright/plan/cluster/topology.hpp"
#include "reader.hpp"

namespace topology_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::demand;
using pipewright::fuzz::read_back;

void try_text(std::string_view text) {
  const auto topology = read_back(text, topology_from_json);
  if (!topology)
    return;
  const int ranks = topology->rank_count();
  demand(ranks > 0, "there is a rank");
  for (const int rank : {0, ranks / 2, ranks - 1})
    demand(topology->rank_of(topology->coordinate_of(rank)) == rank,
           "a coordinate leads back to its rank");
  if (ranks > 1000 || topology->axes().size() > 1000)
    return;  // valid, but listing all its groups takes too long
  for (const std::string& axis : topology->axes()) {
    std::size_t members = 0;
    for (const auto& group : topology->groups_along(axis))
      members += group.size();
    demand(members == static_cast<std::size_t>(ranks), "each rank is in one group of an axis");
  }
}

const pipewright::fuzz::Reader reader("topology", try_text);

}  // namespace topology_fuzz
