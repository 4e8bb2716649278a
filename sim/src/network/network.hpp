#pragma once

// Who talks to whom and how long that takes when others talk too; what runs on the network is of
// `replay.hpp`. One of our own is behind this interface (`fair_network.hpp`), and SimGrid, which is
// nowhere else.

#include <functional>
#include <set>
#include <stdexcept>
#include <utility>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::sim {

/// What a device computes takes `alone` seconds; so many with all cores of its node at work.
struct Compute {
  double alone = 0;
  double contended = 0;
};

/// What a network has to be ready for.
struct Traffic {
  int devices = 0;
  std::set<std::pair<int, int>> pairs;  // directed
  double most_bytes = 0;                // in one transfer
  double seconds = 0;                   // about the time that it all takes: how finely to count
};

class Network {
 public:
  virtual ~Network() = default;

  /// The latency that the network adds to each transfer between two devices.
  virtual double latency(int /*from*/, int /*to*/) const { return 0; }
  /// Sends `bytes`, more than 0, from `start` on, which is not in the past. `done` is called with
  /// the time at which the last byte has left the links; it may send more.
  virtual void send(int from, int to, double bytes, double start,
                    std::function<void(double)> done) = 0;
  /// Computes on a device from `start` on, which is not in the past, on a network whose clock sees
  /// who else on its node does. `done` is called with the time at which it is over.
  virtual void compute(int /*device*/, const Compute& /*work*/, double /*start*/,
                       std::function<void(double)> /*done*/) {
    throw std::logic_error("this network does not see who computes");
  }
  /// Runs until everything has been sent and computed.
  virtual void run() = 0;
};

}  // namespace pipewright::sim
