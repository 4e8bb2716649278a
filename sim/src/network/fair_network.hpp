#pragma once

// The network that a Cluster describes, in which flows share links max-min fairly: no flow's rate
// can grow except at the cost of one that is no faster (Bertsekas and Gallager, Data Networks,
// 6.5). A shared link serves all transfers of a node: inside it a bus, between nodes a card that
// sends and receives at once; further out it is the single link of a group of nodes. A link that is
// not shared exists for each pair of devices. On the same clock, devices of a node slow each other
// down while they compute.

#include <cstdint>
#include <queue>
#include <vector>

#include "network/network.hpp"

namespace pipewright::sim {

class FairNetwork final : public Network {
 public:
  /// `cores` is the number that were busy when contended times were measured.
  explicit FairNetwork(const plan::Cluster& cluster, int cores = 1);

  void send(int from, int to, double bytes, double start,
            std::function<void(double)> done) override;
  void compute(int device, const Compute& work, double start,
               std::function<void(double)> done) override;
  void run() override;

 private:
  /// A transfer, or a device's computation. A computation is one unit of work, and its rate is the
  /// fraction of it that is done per second.
  struct Flow {
    std::vector<int> links{};  // shared ones
    double most = 0;           // its rate without other flows on these
    int node = -1;             // on which it computes; -1: it is a transfer
    Compute work{};
    double left = 0;  // bytes, at `since`
    double rate = 0;  // bytes per second
    double since = 0;
    std::uint32_t version = 0;  // of its rate: changes planned with an older one are void
    std::uint32_t mark = 0;     // of the last search that found it
    std::function<void(double)> done{};
  };
  struct SharedLink {
    double bandwidth = 0;
    std::vector<int> flows{};
    std::uint32_t mark = 0;
    double free = 0;  // while bandwidth is shared
    int waiting = 0;  // flows without a share
  };
  /// The start of a flow, or its end.
  struct FlowChange {
    double time = 0;
    std::uint64_t number = 0;  // at equal times, the earlier request comes first
    int flow = 0;
    std::uint32_t version = 0;
    bool begins = false;
    bool operator>(const FlowChange& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  int new_flow(std::function<void(double)> done);
  void plan_change(double time, int flow, bool begins);
  void begin(int flow);
  void end(int flow);
  void set_rate(int flow, double rate);
  void set_pace(int node);
  void share();
  void share_among(const std::vector<int>& links, const std::vector<int>& flows);
  int slowest_below(double share, const std::vector<int>& flows);
  void give(int flow, double share);
  Flow& flow_at(int flow) { return flows_[static_cast<std::size_t>(flow)]; }
  SharedLink& link_at(int link) { return links_[static_cast<std::size_t>(link)]; }

  const plan::Cluster cluster_;
  int cores_;
  std::vector<int> first_of_level_;          // in `links_`
  std::vector<SharedLink> links_;            // by level and group: outward, inward
  std::vector<std::vector<int>> computing_;  // flows, by node
  std::vector<Flow> flows_;
  std::vector<int> unused_;
  std::vector<int> changed_;  // links changed since bandwidth was last shared
  std::priority_queue<FlowChange, std::vector<FlowChange>, std::greater<>> changes_ahead_;
  double now_ = 0;
  std::uint64_t changes_planned_ = 0;
  std::uint32_t searches_ = 0;
  std::vector<int> found_links_, found_flows_;
};

}  // namespace pipewright::sim
