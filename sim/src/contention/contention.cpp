#include "pipewright/sim/contention/contention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "network/cluster_links.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "structure/collective_rings.hpp"

namespace pipewright::sim {
namespace {

/// A transfer's use of a shared link.
struct Use {
  double start;
  double end;
  int event;
};

using Links = std::map<std::pair<int, std::string>, std::vector<Use>>;  // (node, which)

/// Returns a link's name with a placeholder for the number of its group.
std::string name_of(const plan::Cluster& cluster, const SharedPath& way) {
  const char* const direction = way.inward ? "incoming" : "outgoing";
  if (way.level == 0)
    return "the bus of node {}";
  if (way.level == 1)
    return fmt::format("the network card of node {{}}, {}", direction);
  return fmt::format("the link of group {{}} to level {}, {}",
                     cluster.fabric->levels[way.level - 2].name, direction);
}

/// Adds a transfer of one of the data-parallel pipelines to the links that it shares.
void enter(Links& links, const plan::Cluster& cluster, int from, int to, const Use& use) {
  for (const SharedPath& way : shared_ways(cluster, from, to))
    links[{way.group, name_of(cluster, way)}].push_back(use);
}

/// Adds the transfers of a collective.
void enter(Links& links, const StepCosts& costs, const std::vector<RingPhase>& phases,
           const Use& use) {
  for (const RingPhase& phase : phases)
    for (const std::vector<int>& ring : phase.rings)
      for (std::size_t i = 0; i < ring.size() && ring.size() > 1; ++i)
        enter(links, costs.cluster, ring[i], ring[(i + 1) % ring.size()], use);
}

/// Returns the overlaps of uses; `most` is 1 if they never overlap.
Contention overlaps(const std::vector<Use>& uses) {
  struct Point {
    double time;
    bool begins;
    int event;
  };
  std::vector<Point> points;
  for (const Use& use : uses) {
    points.push_back({use.start, true, use.event});
    points.push_back({use.end, false, use.event});
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.time != b.time ? a.time < b.time : a.begins < b.begins;
  });
  Contention found;
  std::vector<int> open;
  double before = 0;
  for (const Point& point : points) {
    if (open.size() > 1)
      found.seconds += point.time - before;
    before = point.time;
    if (!point.begins) {
      open.erase(std::find(open.begin(), open.end(), point.event));
      continue;
    }
    open.push_back(point.event);
    if (open.size() == 2 && found.most < 2) {
      found.first = point.time;
      found.one = open.front();
      found.other = point.event;
    }
    found.most = std::max(found.most, static_cast<int>(open.size()));
  }
  return found;
}

}  // namespace

std::vector<Contention> shared_link_overlaps(const Structure& structure, const StepCosts& costs,
                                             const Times& times) {
  if (!plan::shares_links(costs.cluster))
    return {};
  Links links;
  CollectiveRings rings(structure, costs);
  for (const int event : structure.order()) {
    const auto& own = structure.events()[event];
    const EventTimes& at = times[event];
    if (at.released <= at.start)
      continue;
    if (plan::is_collective(own.instruction->kind) && structure.events().leader_of(event) == event)
      for (int group = 0; group < collective_groups(costs, own.instruction->kind); ++group)
        enter(links, costs, rings.of(event, group), {at.start, at.released, event});
    if (!plan::is_send(own.instruction->kind))
      continue;
    const int to = structure.events()[own.partner].rank;
    for (int member = 0; member < costs.members(); ++member)
      enter(links, costs.cluster, costs.device(own.rank, member), costs.device(to, member),
            {at.start, at.released, event});
  }
  std::vector<Contention> found;
  for (const auto& [key, uses] : links) {
    Contention contention = overlaps(uses);
    if (contention.most < 2)
      continue;
    contention.link = fmt::format(fmt::runtime(key.second), key.first);
    found.push_back(std::move(contention));
  }
  return found;
}

std::string in_words(const std::vector<Contention>& contentions, const Structure& structure) {
  if (contentions.empty())
    return "";
  const auto worst = std::max_element(
      contentions.begin(), contentions.end(),
      [](const Contention& a, const Contention& b) { return a.seconds < b.seconds; });
  const auto name = [&](int event) {
    return plan::to_string(*structure.events()[event].instruction);
  };
  return fmt::format(
      "the answer is a lower bound: transfers overlap on {} shared link{}, most on {} for {}, "
      "up to {} at once, first {} with {} at {}; `simulate` shares the bandwidth",
      contentions.size(), contentions.size() == 1 ? "" : "s", worst->link,
      plan::time_text(worst->seconds), worst->most, name(worst->one), name(worst->other),
      plan::time_text(worst->first));
}

}  // namespace pipewright::sim
