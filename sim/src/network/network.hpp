#pragma once

// The interface of networks: how long transfers between devices take while others are active; what
// runs on a network is in `replay.hpp`. It has two implementations: our own (`fair_network.hpp`)
// and SimGrid, which is used nowhere else.

#include <functional>
#include <set>
#include <stdexcept>
#include <utility>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::sim {

/// A device's computation, in seconds: `alone`, or with all cores of its node busy.
struct Compute {
  double alone = 0;
  double contended = 0;
};

/// The traffic that a network has to be ready for.
struct Traffic {
  int devices = 0;
  std::set<std::pair<int, int>> pairs;  // directed
  double most_bytes = 0;                // in one transfer
  double seconds = 0;                   // approximate total time, which sets the precision
};

class Network {
 public:
  virtual ~Network() = default;

  /// Returns the latency that the network adds to each transfer between two devices.
  virtual double latency(int /*from*/, int /*to*/) const { return 0; }
  /// Sends `bytes`, more than 0, starting at `start`, which is not in the past. Calls `done` with
  /// the time at which the last byte has left the links; `done` may send more.
  virtual void send(int from, int to, double bytes, double start,
                    std::function<void(double)> done) = 0;
  /// Computes on a device starting at `start`, which is not in the past, on a network whose clock
  /// takes account of the other devices of the node. Calls `done` with the time at which it ends.
  virtual void compute(int /*device*/, const Compute& /*work*/, double /*start*/,
                       std::function<void(double)> /*done*/) {
    throw std::logic_error("this network does not track compute");
  }
  /// Runs until everything has been sent and computed.
  virtual void run() = 0;
};

}  // namespace pipewright::sim
