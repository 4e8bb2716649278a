#pragma once

// Who talks to whom and how long that takes when others talk too; what runs on the network is of
// `replay.hpp`. One of our own is behind this interface (`fair_network.hpp`), and SimGrid, which is
// nowhere else.

#include <functional>
#include <set>
#include <utility>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::sim {

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

  /// Between two devices.
  virtual double latency(int from, int to) const = 0;
  /// Of a step of a ring.
  virtual double ring_latency(int from, int to) const { return latency(from, to); }
  /// As many bytes as the links move at their bandwidth while a transfer holds them, where that
  /// takes another time than its bytes over the bandwidth.
  virtual double moved(int /*from*/, int /*to*/, double bytes) const { return bytes; }
  /// The same of what a ring of so many devices puts on a link in some rounds.
  virtual double ring_moved(int /*from*/, int /*to*/, double bytes, int /*devices*/,
                            int /*rounds*/) const {
    return bytes;
  }
  /// Whether a transfer takes nothing but the latency, of whatever size.
  virtual bool is_instant(int from, int to) const = 0;
  /// Sends `bytes`, more than 0, from `start` on, which is not in the past. `done` is called with
  /// the time at which the last byte has left the links; it may send more.
  virtual void send(int from, int to, double bytes, double start,
                    std::function<void(double)> done) = 0;
  /// Runs until everything has been sent.
  virtual void run() = 0;
};

}  // namespace pipewright::sim
