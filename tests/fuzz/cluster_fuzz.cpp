// Clusters: any two ranks have a link, and what a transfer takes of it is a number.

#include <cmath>
#include <cstdint>
#include <string_view>

#include "json_text.hpp"
#include "pipewright/plan/cluster.hpp"

namespace {

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_text(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
