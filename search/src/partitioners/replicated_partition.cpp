#include "pipewright/search/partitioners/replicated_partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "pipewright/plan/error.hpp"
#include "pipewright/search/partitioners/order_ideals.hpp"

namespace pipewright::search {
namespace {

constexpr double infinity =
    std::numeric_limits<double>::infinity();  // the time of an impossible chain

/// A set of nodes that contains every predecessor of each; a cut is after it.
struct Ideal {
  NodeSet nodes;
  double compute = 0;
  double parameters = 0;
  double output = 0;  // of the nodes whose outputs are used after the cut
};

/// Returns for each node the nodes at the other end of its edges.
std::vector<NodeSet> neighbors(const ProfileGraph& graph, int ProfileEdge::*of,
                               int ProfileEdge::*other) {
  std::vector sets(graph.nodes.size(), empty_node_set(graph.nodes.size()));
  for (const ProfileEdge& edge : graph.edges)
    insert(sets[static_cast<std::size_t>(edge.*of)], static_cast<std::size_t>(edge.*other));
  return sets;
}

/// Returns true for a node that takes no time on any number of machines.
bool is_free(const ProfileNode& node) { return node.compute.value == 0 && node.parameters == 0; }

/// Returns two ideals of each class of ideals that differ only in free nodes and so take the same
/// time: the one with the fewest of them, and the one with the most. Chains of the former and then
/// of the latter, with a stage of only free nodes in between, are as good as any other, if
/// transfers do not count and stages need not have their own machines.
std::vector<NodeSet> ideals_by_cost(const ProfileGraph& graph, const std::vector<NodeSet>& before) {
  const std::size_t nodes = graph.nodes.size();
  const auto ancestors = all_before(before);
  std::vector<std::size_t> costly;
  for (std::size_t node = 0; node < nodes; ++node)
    if (!is_free(graph.nodes[node]))
      costly.push_back(node);

  std::vector costly_before(costly.size(), empty_node_set(costly.size()));
  for (std::size_t node = 0; node < costly.size(); ++node)
    for (std::size_t other = 0; other < costly.size(); ++other)
      if (holds(ancestors[costly[node]], costly[other]))
        insert(costly_before[node], other);

  std::vector<NodeSet> ideals;
  for (const NodeSet& chosen : order_ideals(costly_before, most_ideals)) {
    NodeSet least = empty_node_set(nodes), others = empty_node_set(nodes);
    for (std::size_t node = 0; node < costly.size(); ++node) {
      insert(holds(chosen, node) ? least : others, costly[node]);
      if (holds(chosen, node))
        insert_all(least, ancestors[costly[node]]);
    }
    NodeSet most = least;
    for (std::size_t node = 0; node < nodes; ++node)
      if (is_free(graph.nodes[node]) && !overlap(ancestors[node], others))
        insert(most, node);
    ideals.push_back(std::move(least));
    ideals.push_back(std::move(most));
  }
  std::sort(ideals.begin(), ideals.end(), smaller_first);
  ideals.erase(std::unique(ideals.begin(), ideals.end()), ideals.end());
  return ideals;
}

std::vector<Ideal> ideals_of(const ProfileGraph& graph, const ReplicationOptions& options) {
  const auto before = neighbors(graph, &ProfileEdge::to, &ProfileEdge::from);
  const auto after = neighbors(graph, &ProfileEdge::from, &ProfileEdge::to);
  const bool needs_all = options.straight || options.count_transfers || options.levels.size() > 1;
  std::vector<Ideal> ideals;
  for (auto& nodes :
       needs_all ? order_ideals(before, most_ideals) : ideals_by_cost(graph, before)) {
    Ideal ideal{.nodes = std::move(nodes)};
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
      if (!holds(ideal.nodes, node))
        continue;
      ideal.compute += graph.nodes[node].compute.value;
      ideal.parameters += graph.nodes[node].parameters;
      if (is_empty(after[node]) || !is_inside(after[node], ideal.nodes))
        ideal.output += graph.nodes[node].activation;
    }
    ideals.push_back(std::move(ideal));
  }
  return ideals;
}

/// The end of the best chain up to an ideal.
struct Chain {
  double slowest = infinity;
  std::size_t before = 0;   // the ideal before its last stage
  int replicas = 0;         // of its last stage
  double stage = infinity;  // time of its last stage
};

/// Finds chains on one level of machines, over the ideals in order.
class Level {
 public:
  /// `compute[i][j]` is the time of a stage from ideal i to ideal j on one machine of this level,
  /// or infinite if i is not inside j. `group` is the number of machines of the level below in one
  /// of this.
  Level(const std::vector<Ideal>& ideals, const std::vector<std::vector<double>>& compute,
        const MachineLevel& level, int group, const ReplicationOptions& options)
      : ideals_(ideals), compute_(compute), level_(level), group_(group), options_(options) {}

  /// Returns the best chain from ideal `first` to each other, by number of machines, all of them
  /// used.
  std::vector<std::vector<Chain>> chains_from(std::size_t first) const {
    const auto machines = static_cast<std::size_t>(level_.machines);
    std::vector chains(ideals_.size(), std::vector<Chain>(machines + 1));
    for (std::size_t last = first + 1; last < ideals_.size(); ++last)
      if (compute_[first][last] < infinity)
        for (int used = 1; used <= level_.machines; ++used)
          chains[last][static_cast<std::size_t>(used)] = best_chain(chains, first, last, used);
    return chains;
  }

 private:
  Chain best_chain(const std::vector<std::vector<Chain>>& chains, std::size_t first,
                   std::size_t last, int used) const {
    Chain best;
    if (used == 1 || !options_.straight) {
      const double whole = stage_time(first, last, used, group_);
      best = {whole, first, used, whole};
    }
    const int most = options_.straight ? std::min(1, used - 1) : used - 1;
    for (std::size_t cut = first + 1; cut < last; ++cut) {
      if (compute_[first][cut] == infinity || compute_[cut][last] == infinity)
        continue;
      for (int replicas = 1; replicas <= most; ++replicas) {
        const double before = chains[cut][static_cast<std::size_t>(used - replicas)].slowest;
        const double stage = stage_time(cut, last, replicas, 1);
        const double slowest = std::max({before, stage, transfer_time(cut, last, replicas)});
        if (slowest < best.slowest)
          best = {slowest, cut, replicas, stage};
      }
    }
    return best;
  }

  /// Returns the time of a stage. A group averages the gradients of an undivided stage over all its
  /// links at once.
  double stage_time(std::size_t from, std::size_t to, int replicas, int links) const {
    const double parameters = ideals_[to].parameters - ideals_[from].parameters;
    const double average =
        4 * (replicas - 1) * parameters / (level_.bandwidth_per_s * replicas * links);
    return (compute_[from][to] + average) / replicas;
  }

  double transfer_time(std::size_t from, std::size_t to, int replicas) const {
    if (!options_.count_transfers)
      return 0;
    const double sent = to + 1 < ideals_.size() ? ideals_[to].output : 0;
    return 2 * std::max(ideals_[from].output, sent) / (level_.bandwidth_per_s * replicas);
  }

  const std::vector<Ideal>& ideals_;
  const std::vector<std::vector<double>>& compute_;
  const MachineLevel& level_;
  int group_;
  const ReplicationOptions& options_;
};

std::vector<std::vector<double>> compute_times(const std::vector<Ideal>& ideals) {
  std::vector times(ideals.size(), std::vector<double>(ideals.size(), infinity));
  for (std::size_t i = 0; i < ideals.size(); ++i)
    for (std::size_t j = i + 1; j < ideals.size(); ++j)
      if (is_inside(ideals[i].nodes, ideals[j].nodes))
        times[i][j] = ideals[j].compute - ideals[i].compute;
  return times;
}

std::vector<ReplicatedStage> stages_of(const ProfileGraph& graph, const std::vector<Ideal>& ideals,
                                       const std::vector<std::vector<Chain>>& chains) {
  std::vector<ReplicatedStage> stages;
  std::size_t at = ideals.size() - 1;
  for (std::size_t machines = chains.back().size() - 1; at > 0;) {
    const Chain& chain = chains[at][machines];
    ReplicatedStage stage{.nodes = {}, .replicas = chain.replicas, .time = {chain.stage}};
    for (std::size_t node = 0; node < graph.nodes.size(); ++node)
      if (holds(ideals[at].nodes, node) && !holds(ideals[chain.before].nodes, node))
        stage.nodes.push_back(graph.nodes[node].id);
    stages.insert(stages.begin(), std::move(stage));
    machines -= static_cast<std::size_t>(chain.replicas);
    at = chain.before;
  }
  return stages;
}

void check(const ProfileGraph& graph, const ReplicationOptions& options) {
  if (graph.nodes.empty())
    throw plan::InputError("the profile has no node to put on a machine");
  if (options.levels.empty())
    throw plan::InputError("no machines given: at least one level of machines is needed");
  for (const MachineLevel& level : options.levels) {
    if (level.machines < 1)
      throw plan::InputError(
          fmt::format("{} machines given: at least 1 is needed", level.machines));
    if (!(level.bandwidth_per_s > 0))
      throw plan::InputError(fmt::format("a bandwidth of {} bytes/s given: it must be more than 0",
                                         level.bandwidth_per_s));
  }
}

/// Throws InputError if the search would take minutes.
void check_work(std::size_t ideals, const ReplicationOptions& options) {
  constexpr double most_steps = 1e11;
  const double most_machines = std::floor(std::sqrt(most_steps) / static_cast<double>(ideals));
  for (const MachineLevel& level : options.levels)
    if (level.machines > most_machines)
      throw plan::InputError(
          fmt::format("{} machines given: this profile can be cut at {} places, and its search is "
                      "possible for at most {:.0f} machines",
                      level.machines, ideals, most_machines));
}

}  // namespace

ReplicatedPartition replicated_partition(const ProfileGraph& graph,
                                         const ReplicationOptions& options) {
  check(graph, options);
  const auto ideals = ideals_of(graph, options);
  check_work(ideals.size(), options);
  auto compute = compute_times(ideals);
  int group = 1;
  for (std::size_t level = 0; level + 1 < options.levels.size(); ++level) {
    std::vector<std::vector<double>> grouped(compute.size());
    const Level inner(ideals, compute, options.levels[level], group, options);
    for (std::size_t first = 0; first < ideals.size(); ++first)
      for (const auto& chains : inner.chains_from(first))
        grouped[first].push_back(chains.back().slowest);
    compute = std::move(grouped);
    group = options.levels[level].machines;
  }
  const Level outer(ideals, compute, options.levels.back(), group, options);
  const auto chains = outer.chains_from(0);
  const double slowest = chains.back().back().slowest;
  if (slowest == infinity)
    throw plan::Infeasible(fmt::format(
        "a straight pipeline needs a stage for each of {} machines, but the graph has only {} "
        "nodes",
        options.levels.back().machines, graph.nodes.size()));
  return {.slowest_stage = {slowest},
          .one_machine = {ideals.back().compute},
          .stages = stages_of(graph, ideals, chains)};
}

}  // namespace pipewright::search
