#include "pipewright/loop_torch/measured_links.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "pipewright/exec/cpu/core.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/stopped.hpp"
#include "pipewright/profiler/cores/cores.hpp"

namespace pipewright::loop {
namespace {

/// Returns an identifier of the node. Processes of a node share its network, unless they are in
/// different network namespaces.
std::string node_name() {
  std::string host(256, '\0');
  if (gethostname(host.data(), host.size()) != 0)
    host.clear();
  std::error_code unknown;
  const auto network = std::filesystem::read_symlink("/proc/self/ns/net", unknown);
  return host.c_str() + (" " + network.string());
}

profiler::LinkRanks ranks_of(const std::vector<int>& ranks) {
  profiler::LinkRanks who{{}, ranks};
  for (std::size_t r = 0; r + 1 < ranks.size(); r += 2)
    who.pairs.emplace_back(ranks[r], ranks[r + 1]);
  return who;
}

/// Pairs ranks of the first two nodes, and forms a ring of one rank of each node.
profiler::LinkRanks across(const std::vector<std::vector<int>>& nodes) {
  profiler::LinkRanks who;
  for (const auto& node : nodes)
    who.ring.push_back(node.front());
  std::sort(who.ring.begin(), who.ring.end());
  for (std::size_t r = 0; r < std::min(nodes[0].size(), nodes[1].size()); ++r)
    who.pairs.push_back(std::minmax(nodes[0][r], nodes[1][r]));
  return who;
}

/// Returns the ranks of each node, starting with the node of rank 0.
std::vector<std::vector<int>> nodes_of(const Membership& members) {
  std::vector<std::vector<int>> nodes;
  std::map<std::string, std::size_t> known;
  int rank = 0;
  for (const std::string& name : members.from_all(node_name())) {
    const auto [found, is_new] = known.try_emplace(name, nodes.size());
    if (is_new)
      nodes.emplace_back();
    nodes[found->second].push_back(rank++);
  }
  return nodes;
}

}  // namespace

plan::LinkSamples links_in_process(int ranks, const LinkSettings& settings) {
  const auto transport = exec::make_in_process_transport(ranks);
  std::vector<int> all(static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < all.size(); ++r)
    all[r] = static_cast<int>(r);
  const auto who = ranks_of(all);
  std::optional<plan::LinkSamples> samples;
  profiler::Cores cores(ranks, [&](int rank) {
    at::set_num_threads(1);
    exec::pin_to_core(rank, ranks);
    return nullptr;
  });
  cores.together([&](int rank) {
    try {
      auto own = profiler::measure_links({*transport, rank, ranks}, who, settings.limits,
                                         settings.progress, settings.stop);
      if (rank == 0)
        samples = std::move(own);
    } catch (const std::exception& failure) {
      transport->abort(failure.what());
      throw;
    }
  });
  if (!samples)
    throw plan::Stopped{};
  samples->over = "in process";
  return *samples;
}

std::vector<plan::LinkSamples> links_of_job(const Membership& members, const std::string& over,
                                            const exec::RankDevice& device,
                                            const LinkSettings& settings) {
  const auto nodes = nodes_of(members);
  std::vector<std::pair<profiler::LinkRanks, bool>> kinds;
  const int computing_ranks = device.device.is_cpu() ? settings.computing_ranks : 0;
  if (nodes.front().size() > 1) {
    profiler::LinkRanks who = ranks_of(nodes.front());
    // More processes than the training has ranks would compete for cores.
    if (computing_ranks > 0)
      who.ring.resize(std::min(who.ring.size(), std::max<std::size_t>(2, computing_ranks)));
    kinds.emplace_back(std::move(who), false);
  }
  if (nodes.size() > 1)
    kinds.emplace_back(across(nodes), true);
  profiler::LinkLimits limits = settings.limits;
  limits.within =
      limits.within * (1.0 / static_cast<double>(std::max<std::size_t>(1, kinds.size())));
  const auto ranks = static_cast<int>(members.from_all(std::string()).size());
  std::vector<plan::LinkSamples> all;
  for (const auto& [who, between_nodes] : kinds) {
    auto samples = profiler::measure_links({.transport = *members.transport(),
                                            .rank = members.rank().value(),
                                            .ranks = ranks,
                                            .device = device,
                                            .computing_ranks = computing_ranks},
                                           who, limits, settings.progress, settings.stop);
    if (!samples)
      throw plan::Stopped{};
    samples->over = over;
    samples->between_nodes = between_nodes;
    samples->most_pairs = between_nodes ? computing_ranks : computing_ranks / 2;
    all.push_back(std::move(*samples));
  }
  return all;
}

}  // namespace pipewright::loop
