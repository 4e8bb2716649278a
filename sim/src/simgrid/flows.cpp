#include "simgrid/flows.hpp"

#include <xbt/log.h>

#include <algorithm>
#include <cmath>
#include <simgrid/kernel/Timer.hpp>

namespace pipewright::sim {
namespace {

namespace s4u = simgrid::s4u;

s4u::Engine quiet_engine() {
  xbt_log_control_set("root.fmt:%m%n");
  xbt_log_control_set("xbt_cfg.thres:warning");
  return s4u::Engine("pipewright");
}

/// Makes flows share a link fairly and use all of it. By default SimGrid imitates TCP on Ethernet:
/// shares by round-trip time, latency times 13, bandwidth times 0.97. The caller adds latencies,
/// because a queue is released before they have passed.
void configure(double precision) {
  for (const char* setting :
       {"network/model:CM02", "network/bandwidth-factor:1", "network/latency-factor:0",
        "network/weight-S:0", "network/TCP-gamma:0", "network/crosstraffic:0",
        "maxmin/precision:1e-9", "debug/verbose-exit:0"})
    s4u::Engine::set_config(setting);
  s4u::Engine::set_config("surf/precision", precision);
}

}  // namespace

Flows::Flows(double seconds) : engine_(quiet_engine()) {
  // Times that differ by less than this are equal; it is far below any precision of interest.
  configure(std::max(1e-13 * seconds, 1e-18));
  s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
    const auto found = live_.find(&activity);
    const auto done = std::move(found->second.done);
    ended_ = std::move(found->second.comm);
    live_.erase(found);
    done(s4u::Engine::get_clock());
  });
}

void Flows::send(s4u::Host* from, s4u::Host* to, double quanta, double start,
                 std::function<void(double)> done) {
  if (start <= s4u::Engine::get_clock())
    return launch(from, to, quanta, std::move(done));
  simgrid::kernel::timer::Timer::set(
      start, [this, from, to, quanta, done = std::move(done)] { launch(from, to, quanta, done); });
}

void Flows::launch(s4u::Host* from, s4u::Host* to, double quanta,
                   std::function<void(double)> done) {
  const s4u::CommPtr comm = s4u::Comm::sendto_init(from, to);
  comm->set_payload_size(static_cast<std::uint64_t>(std::llround(std::max(quanta, 1.0))));
  live_.emplace(comm.get(), Flow{comm, std::move(done)});
  comm->start();
}

}  // namespace pipewright::sim
