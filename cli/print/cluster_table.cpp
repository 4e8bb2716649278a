#include "print/cluster_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pipewright::cli {
namespace {

/// Returns the number of transfers of all pipelines by level.
std::vector<std::int64_t> transfers_by_level(const sim::ScenarioPlan& plan) {
  const plan::Cluster& cluster = plan.costs.cluster;
  const plan::Dependencies& events = plan.structure->events();
  std::vector<std::int64_t> count(level_count(cluster), 0);
  for (int event = 0; event < events.size(); ++event) {
    if (!plan::is_send(events[event].instruction->kind))
      continue;
    const int to = events[events[event].partner].rank;
    for (int member = 0; member < plan.costs.members(); ++member)
      ++count[level_between(cluster, plan.costs.device(events[event].rank, member),
                            plan.costs.device(to, member))];
  }
  return count;
}

/// Returns the speed by rank, which is that of its slowest device.
std::vector<double> kind_speeds(const sim::ScenarioPlan& plan) {
  std::vector<double> speeds;
  for (int rank = 0; rank < std::ssize(plan.program().ranks); ++rank) {
    double& least = speeds.emplace_back(kind_speed(plan.costs.cluster, plan.costs.device(rank, 0)));
    for (int member = 1; member < plan.costs.members(); ++member)
      least = std::min(least, kind_speed(plan.costs.cluster, plan.costs.device(rank, member)));
  }
  return speeds;
}

}  // namespace

std::string cluster_table(const sim::ScenarioPlan& plan) {
  std::string text;
  if (plan.costs.cluster.fabric) {
    const std::vector<std::int64_t> count = transfers_by_level(plan);
    for (std::size_t level = 0; level < count.size(); ++level)
      text += fmt::format("{}{} {}", level == 0 ? "transfers: " : ", ", count[level],
                          level_words(plan.costs.cluster, level));
    text += '\n';
  }
  if (plan.costs.cluster.mixture)
    text += fmt::format("speed of ranks by their nodes: {}\n", fmt::join(kind_speeds(plan), " "));
  return text;
}

plan::Json cluster_json(const sim::ScenarioPlan& plan) {
  plan::Json json = plan::Json::object();
  if (plan.costs.cluster.fabric) {
    const std::vector<std::int64_t> count = transfers_by_level(plan);
    for (std::size_t level = 0; level < count.size(); ++level)
      json["transfers_by_level"][level_words(plan.costs.cluster, level)] = count[level];
  }
  if (plan.costs.cluster.mixture)
    json["kind_speeds"] = kind_speeds(plan);
  return json;
}

}  // namespace pipewright::cli
