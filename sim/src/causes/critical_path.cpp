#include "pipewright/sim/causes/critical_path.hpp"

#include <algorithm>
#include <limits>

namespace pipewright::sim {
namespace {

/// Returns the event that `event` waited for last; -1 if it began with the iteration.
int binding_wait(const Structure& structure, const Times& times, int event) {
  const auto& own = structure.events()[event];
  const bool receives = plan::is_receive(own.instruction->kind);
  // The data arrived after the receive was posted, so the receive waited for the transfer.
  if (receives && times[own.partner].end > times[event].start)
    return own.partner;
  int binding = -1;
  double latest = 0;
  structure.events().for_each_predecessor(event, [&](int before, plan::Until until) {
    if (receives && before == own.partner)
      return;
    const double time = until == plan::Until::Done ? times[before].end : times[before].released;
    if (time > latest) {  // compute is visited first, so it wins a tie
      latest = time;
      binding = before;
    }
  });
  return binding;
}

/// The latest times that do not make the iteration longer.
struct Latest {
  double released = std::numeric_limits<double>::infinity();
  double end = std::numeric_limits<double>::infinity();
};

}  // namespace

std::vector<int> critical_path(const Structure& structure, const Times& times) {
  int event = -1;
  for (int candidate = 0; candidate < structure.size(); ++candidate)
    if (event < 0 || times[candidate].end > times[event].end)
      event = candidate;
  std::vector<int> path;
  for (; event >= 0; event = binding_wait(structure, times, event))
    path.push_back(event);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<double> slack(const Structure& structure, const Times& times) {
  const plan::Dependencies& events = structure.events();
  std::vector<Latest> latest(static_cast<std::size_t>(structure.size()));
  std::vector<double> slack(latest.size());
  const auto& order = structure.order();
  for (std::size_t i = order.size(); i-- > 0;) {
    const int event = order[i];
    Latest& own = latest[static_cast<std::size_t>(event)];
    own.end = std::min(own.end, times.iteration);
    const double room = std::min(own.end - times[event].end, own.released - times[event].released);
    slack[static_cast<std::size_t>(event)] = std::max(room, 0.0);
    const auto& self = events[event];
    const bool receives = plan::is_receive(self.instruction->kind);
    // A receive may be as late as its data may be, and a member of a collective as late as the
    // leader that takes its time; every other event starts later by its slack.
    const bool only_waits = receives || events.leader_of(event) != event;
    const double start = only_waits ? std::min(own.end, own.released) : times[event].start + room;
    events.for_each_predecessor(event, [&](int before, plan::Until until) {
      Latest& other = latest[static_cast<std::size_t>(before)];
      if (receives && before == self.partner) {
        other.end = std::min(other.end, own.end);
        other.released = std::min(other.released, own.released);
      } else if (until == plan::Until::Done) {
        other.end = std::min(other.end, start);
      } else {
        other.released = std::min(other.released, start);
      }
    });
  }
  return slack;
}

}  // namespace pipewright::sim
