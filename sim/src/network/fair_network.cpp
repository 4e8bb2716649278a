#include "network/fair_network.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "network/cluster_links.hpp"

namespace pipewright::sim {
namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

}  // namespace

FairNetwork::FairNetwork(const plan::Cluster& cluster, int cores)
    : cluster_(cluster),
      cores_(cores),
      computing_(static_cast<std::size_t>(std::max(1, cluster.nodes))) {
  for (std::size_t level = 0; level < plan::level_count(cluster); ++level) {
    first_of_level_.push_back(static_cast<int>(links_.size()));
    const auto count = 2 * static_cast<std::size_t>(plan::group_count(cluster, level));
    links_.resize(links_.size() + count, {.bandwidth = rate_of(link_of_level(cluster, level))});
  }
}

void FairNetwork::send(int from, int to, double bytes, double start,
                       std::function<void(double)> done) {
  const int id = new_flow(std::move(done));
  Flow& flow = flow_at(id);
  flow.left = bytes;
  const plan::Link& used = plan::link_between(cluster_, from, to);
  for (const SharedPath& way : shared_ways(cluster_, from, to))
    flow.links.push_back(first_of_level_[way.level] + 2 * way.group + (way.inward ? 1 : 0));
  flow.most = used.shared ? endless : rate_of(used);
  if (flow.links.empty())
    flow.rate = flow.most;
  plan_change(std::max(start, now_), id, true);
}

void FairNetwork::compute(int device, const Compute& work, double start,
                          std::function<void(double)> done) {
  const int id = new_flow(std::move(done));
  Flow& flow = flow_at(id);
  flow.node = plan::node_of(cluster_, device);
  flow.work = work;
  flow.left = 1;
  plan_change(std::max(start, now_), id, true);
}

int FairNetwork::new_flow(std::function<void(double)> done) {
  int id = static_cast<int>(flows_.size());
  if (unused_.empty()) {
    flows_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  Flow& flow = flow_at(id);
  flow.done = std::move(done);
  flow.links.clear();
  flow.node = -1;
  flow.rate = 0;
  return id;
}

void FairNetwork::plan_change(double time, int flow, bool begins) {
  changes_ahead_.push({time, changes_planned_++, flow, flow_at(flow).version, begins});
}

void FairNetwork::run() {
  while (true) {
    // All events at one time are processed before bandwidth is shared again.
    if (!changed_.empty() && (changes_ahead_.empty() || changes_ahead_.top().time > now_))
      share();
    if (changes_ahead_.empty())
      return;
    const FlowChange change = changes_ahead_.top();
    changes_ahead_.pop();
    if (change.version != flow_at(change.flow).version)
      continue;
    now_ = std::max(now_, change.time);
    if (change.begins)
      begin(change.flow);
    else
      end(change.flow);
  }
}

void FairNetwork::begin(int id) {
  Flow& flow = flow_at(id);
  flow.since = now_;
  if (flow.node >= 0) {
    computing_[static_cast<std::size_t>(flow.node)].push_back(id);
    return set_pace(flow.node);
  }
  if (flow.links.empty())
    return plan_change(now_ + flow.left / flow.rate, id, false);
  for (const int link : flow.links) {
    link_at(link).flows.push_back(id);
    changed_.push_back(link);
  }
}

void FairNetwork::end(int id) {
  Flow& flow = flow_at(id);
  for (const int link : flow.links) {
    std::erase(link_at(link).flows, id);
    changed_.push_back(link);
  }
  if (flow.node >= 0) {
    std::erase(computing_[static_cast<std::size_t>(flow.node)], id);
    set_pace(flow.node);
  }
  ++flow.version;
  unused_.push_back(id);
  const auto done = std::move(flow.done);
  done(now_);
}

void FairNetwork::set_rate(int id, double rate) {
  Flow& flow = flow_at(id);
  if (flow.rate == rate)
    return;
  flow.left = std::max(0.0, flow.left - flow.rate * (now_ - flow.since));
  flow.since = now_;
  flow.rate = rate;
  ++flow.version;
  plan_change(now_ + flow.left / rate, id, false);
}

/// Sets the rate of all flows that compute on the node, by their number.
void FairNetwork::set_pace(int node) {
  const std::vector<int>& flows = computing_[static_cast<std::size_t>(node)];
  const int busy = std::min(static_cast<int>(flows.size()), cores_);
  for (const int id : flows) {
    const auto [alone, contended] = flow_at(id).work;
    set_rate(id, 1 / (alone + (contended - alone) * (busy - 1) / (cores_ - 1)));
  }
}

/// Shares bandwidth among the flows that the changed links can affect, through any links that they
/// have in common.
void FairNetwork::share() {
  ++searches_;
  found_links_.clear();
  found_flows_.clear();
  const auto add_link = [&](int link) {
    if (link_at(link).mark == searches_)
      return;
    link_at(link).mark = searches_;
    found_links_.push_back(link);
  };
  for (const int link : changed_)
    add_link(link);
  changed_.clear();
  for (std::size_t at = 0; at < found_links_.size(); ++at)
    for (const int id : link_at(found_links_[at]).flows) {
      Flow& flow = flow_at(id);
      if (flow.mark == searches_)
        continue;
      flow.mark = searches_;
      found_flows_.push_back(id);
      for (const int link : flow.links)
        add_link(link);
    }
  share_among(found_links_, found_flows_);
}

/// Divides bandwidth max-min fairly. The link with the least bandwidth per flow gives its flows
/// their share. Flows that are limited by their own maximum get that; the others divide the rest.
void FairNetwork::share_among(const std::vector<int>& links, const std::vector<int>& flows) {
  for (const int link : links) {
    link_at(link).free = link_at(link).bandwidth;
    link_at(link).waiting = static_cast<int>(link_at(link).flows.size());
  }
  ++searches_;  // a mark of this number: has its share
  for (std::size_t given = 0; given < flows.size();) {
    double least = endless;
    int narrowest = -1;
    for (const int link : links) {
      const SharedLink& own = link_at(link);
      if (own.waiting > 0 && own.free / own.waiting < least) {
        least = own.free / own.waiting;
        narrowest = link;
      }
    }
    const int slowest = slowest_below(least, flows);
    for (const int id : slowest < 0 ? link_at(narrowest).flows : std::vector{slowest})
      if (flow_at(id).mark != searches_) {
        give(id, std::min(least, flow_at(id).most));
        ++given;
      }
  }
}

/// Returns the flow without a share that has the lowest maximum below `share`; -1: none.
int FairNetwork::slowest_below(double share, const std::vector<int>& flows) {
  int slowest = -1;
  for (const int id : flows)
    if (const Flow& flow = flow_at(id); flow.mark != searches_ && flow.most < share) {
      share = flow.most;
      slowest = id;
    }
  return slowest;
}

void FairNetwork::give(int id, double share) {
  Flow& flow = flow_at(id);
  flow.mark = searches_;
  for (const int link : flow.links) {
    link_at(link).free -= share;
    --link_at(link).waiting;
  }
  set_rate(id, share);
}

}  // namespace pipewright::sim
