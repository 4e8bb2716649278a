#pragma once

// SimGrid's engine reduced to the needs of a Network: flows between hosts, and a clock.

#include <functional>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>

#include "network/network.hpp"

namespace pipewright::sim {

/// Flows whose sizes are whole numbers of quanta, because SimGrid counts in whole bytes.
class Flows {
 public:
  /// `seconds` is the approximate total time.
  explicit Flows(double seconds);

  const simgrid::s4u::Engine& engine() const { return engine_; }
  void send(simgrid::s4u::Host* from, simgrid::s4u::Host* to, double quanta, double start,
            std::function<void(double)> done);
  void run() { engine_.run(); }

 private:
  struct Flow {
    simgrid::s4u::CommPtr comm;
    std::function<void(double)> done;
  };
  void launch(simgrid::s4u::Host* from, simgrid::s4u::Host* to, double quanta,
              std::function<void(double)> done);

  simgrid::s4u::Engine engine_;
  std::unordered_map<const simgrid::s4u::Activity*, Flow> live_;
  simgrid::s4u::CommPtr ended_;  // the last one: SimGrid still reads it after calling our callback
};

}  // namespace pipewright::sim
