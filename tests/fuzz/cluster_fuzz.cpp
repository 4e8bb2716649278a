// Clusters: any two ranks have a link, and the time of a transfer over it is a number.

#include <cmath>
#include <string_view>

#include "json_text.hpp"
#include "pipewright/plan/cluster/cluster.hpp"
#include "reader.hpp"

namespace cluster_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::demand;
using pipewright::fuzz::read_back;

void try_text(std::string_view text) {
  const auto cluster = read_back(text, cluster_from_json);
  if (!cluster)
    return;
  for (const int rank : {0, 1, 7, 999'999}) {
    const Link& link = link_between(*cluster, 0, rank);
    demand(!std::isnan(occupancy(link, cluster->device.memory).value), "a transfer takes time");
  }
}

const pipewright::fuzz::Reader reader("cluster", try_text);

}  // namespace cluster_fuzz
