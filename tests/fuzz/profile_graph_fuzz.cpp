// Operator profiles as CSV: an accepted profile is a graph of finite costs, which can be
// partitioned unless it has cycles or too many possible cuts.

#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include "pipewright/search/partitioners/profile_graph.hpp"
#include "pipewright/search/partitioners/replicated_partition.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace profile_graph_fuzz {

using namespace pipewright::plan;
using namespace pipewright::search;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;
using pipewright::fuzz::may_be_refused;

void check(const ProfileGraph& graph) {
  std::set<std::string> ids;
  for (const ProfileNode& node : graph.nodes) {
    demand(ids.insert(node.id).second, "node ids are unique");
    for (const double cost : {node.compute.value, node.activation, node.parameters})
      demand(std::isfinite(cost) && cost >= 0, "costs are finite");
  }
  const auto nodes = static_cast<int>(graph.nodes.size());
  for (const ProfileEdge& edge : graph.edges)
    demand(0 <= edge.from && edge.from < nodes && 0 <= edge.to && edge.to < nodes,
           "edges join nodes that exist");
}

void try_text(std::string_view text) {
  const auto graph = accepted([&] { return profile_graph_from_csv(std::string(text), "fuzz"); });
  if (!graph)
    return;
  check(*graph);
  const ProfileGraph inner = without_ends(*graph);
  check(inner);
  if (inner.nodes.size() <= 8)
    may_be_refused([&] {
      const auto cut = replicated_partition(inner, {.levels = {{.machines = 2}}});
      demand(!cut.stages.empty(), "a cut graph has a stage");
    });
}

const pipewright::fuzz::Reader reader("profile_graph", try_text);

}  // namespace profile_graph_fuzz
