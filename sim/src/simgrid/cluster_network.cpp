// The network that a Cluster describes. A shared link serves all transfers of a node: inside it a
// bus, between nodes a card that sends and receives at once; further out it is the single link of a
// group of nodes. A link that is not shared exists for each pair of devices, without contention.

#include <fmt/format.h>

#include <map>
#include <vector>

#include "network/cluster_links.hpp"
#include "simgrid/flows.hpp"
#include "simgrid/simgrid_networks.hpp"

namespace pipewright::sim {
namespace {

namespace s4u = simgrid::s4u;

class ClusterNetwork final : public Network {
 public:
  ClusterNetwork(const plan::Cluster& cluster, const Traffic& traffic)
      : cluster_(cluster),
        flows_(traffic.seconds),
        // The largest transfer keeps some 15 digits; a cluster's bytes need not be whole.
        quanta_per_byte_(traffic.most_bytes > 0 ? 0x1p50 / traffic.most_bytes : 1),
        zone_(s4u::create_full_zone("cluster")) {
    for (const auto& [from, to] : traffic.pairs)
      zone_->add_route(host(from)->get_netpoint(), host(to)->get_netpoint(), nullptr, nullptr,
                       route(from, to), false);
    zone_->seal();
  }

  void send(int from, int to, double bytes, double start,
            std::function<void(double)> done) override {
    flows_.send(hosts_.at(from), hosts_.at(to), bytes * quanta_per_byte_, start, std::move(done));
  }
  void run() override { flows_.run(); }

 private:
  s4u::Host* host(int device) {
    s4u::Host*& host = hosts_[device];
    if (host == nullptr)
      host = zone_->create_host(fmt::format("device {}", device), 1)->seal();
    return host;
  }

  std::vector<s4u::LinkInRoute> route(int from, int to) {
    const plan::Link& used = plan::link_between(cluster_, from, to);
    using Policy = s4u::Link::SharingPolicy;
    std::vector<s4u::LinkInRoute> route;
    for (const SharedPath& way : shared_ways(cluster_, from, to))
      route.push_back(made(fmt::format("{} group {} of level {}", way.inward ? "into" : "out of",
                                       way.group, way.level),
                           plan::link_of_level(cluster_, way.level), Policy::SHARED));
    if (!used.shared)
      route.push_back(made(fmt::format("{} to {}", from, to), used, Policy::FATPIPE));
    return route;
  }

  s4u::LinkInRoute made(const std::string& name, const plan::Link& like,
                        s4u::Link::SharingPolicy policy) {
    const auto [found, is_new] = links_.try_emplace(name, nullptr);
    if (is_new)
      found->second = zone_->create_link(name, rate_of(like) * quanta_per_byte_)
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
