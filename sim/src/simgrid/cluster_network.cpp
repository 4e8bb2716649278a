// The network that a Cluster describes. A shared link is one for all transfers of a node: inside it
// a bus, between nodes a card that sends and receives at once. What is not shared is there for each
// pair of devices, and nothing contends on it.

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <vector>

#include "simgrid/flows.hpp"

namespace pipewright::sim {
namespace {

namespace s4u = simgrid::s4u;

class ClusterNetwork final : public Network {
 public:
  ClusterNetwork(const plan::Cluster& cluster, const Traffic& traffic)
      : cluster_(cluster),
        flows_(traffic.seconds),
        // Of the largest transfer some 15 digits are left; a cluster's bytes need not be whole.
        quanta_per_byte_(traffic.most_bytes > 0 ? 0x1p50 / traffic.most_bytes : 1),
        zone_(s4u::create_full_zone("cluster")) {
    for (const auto& [from, to] : traffic.pairs)
      if (!is_instant(from, to))
        zone_->add_route(host(from)->get_netpoint(), host(to)->get_netpoint(), nullptr, nullptr,
                         route(from, to), false);
    zone_->seal();
  }

  double latency(int from, int to) const override { return link(from, to).latency.value; }
  double ring_latency(int from, int to) const override {
    return plan::ring_time(link(from, to), {}, 2, 1).latency.value;
  }
  double moved(int from, int to, double bytes) const override {
    const plan::Link& used = link(from, to);
    if (used.segments.empty())
      return bytes;
    return plan::occupancy(used, plan::whole_bytes(bytes)).value * used.bandwidth_per_s;
  }
  double ring_moved(int from, int to, double bytes, int devices, int rounds) const override {
    const plan::Link& used = link(from, to);
    if (used.segments.empty() && !(used.sum_bandwidth_per_s > 0))
      return bytes;
    const double size = bytes * devices / (rounds * (devices - 1));
    return plan::ring_time(used, {std::llround(size)}, devices, rounds).held.value *
           used.bandwidth_per_s;
  }
  bool is_instant(int from, int to) const override {
    return std::isinf(link(from, to).bandwidth_per_s);
  }
  void send(int from, int to, double bytes, double start,
            std::function<void(double)> done) override {
    flows_.send(hosts_.at(from), hosts_.at(to), bytes * quanta_per_byte_, start, std::move(done));
  }
  void run() override { flows_.run(); }

 private:
  const plan::Link& link(int from, int to) const { return plan::link_between(cluster_, from, to); }

  s4u::Host* host(int device) {
    s4u::Host*& host = hosts_[device];
    if (host == nullptr)
      host = zone_->create_host(fmt::format("device {}", device), 1)->seal();
    return host;
  }

  std::vector<s4u::LinkInRoute> route(int from, int to) {
    const plan::Link& used = link(from, to);
    const int node = plan::node_of(cluster_, from), other = plan::node_of(cluster_, to);
    using Policy = s4u::Link::SharingPolicy;
    if (!used.shared)
      return {made(fmt::format("{} to {}", from, to), used, Policy::FATPIPE)};
    if (node == other)
      return {made(fmt::format("bus of node {}", node), used, Policy::SHARED)};
    return {made(fmt::format("out of node {}", node), used, Policy::SHARED),
            made(fmt::format("into node {}", other), used, Policy::SHARED)};
  }

  s4u::LinkInRoute made(const std::string& name, const plan::Link& like,
                        s4u::Link::SharingPolicy policy) {
    const auto [found, is_new] = links_.try_emplace(name, nullptr);
    if (is_new)
      found->second = zone_->create_link(name, like.bandwidth_per_s * quanta_per_byte_)
                          ->set_sharing_policy(policy)
                          ->seal();
    return s4u::LinkInRoute(found->second);
  }

  const plan::Cluster cluster_;
  Flows flows_;
  const double quanta_per_byte_;
  s4u::NetZone* const zone_;
  std::map<int, s4u::Host*> hosts_;
  std::map<std::string, s4u::Link*> links_;
};

}  // namespace

std::unique_ptr<Network> network_of(const plan::Cluster& cluster, const Traffic& traffic) {
  return std::make_unique<ClusterNetwork>(cluster, traffic);
}

}  // namespace pipewright::sim
