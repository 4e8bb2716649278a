#include "pipewright/sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "event_graph.hpp"
#include "memory.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::sim {
namespace {

using plan::Bytes;
using plan::Instruction;
using plan::InstructionKind;
using plan::Seconds;
using plan::Span;

/// When an event ran, and when it let go of its queue and link.
struct Times {
  Seconds start;
  Seconds released;
  Seconds done;
};

class Engine {
 public:
  Engine(const plan::Program& program, const std::vector<plan::StageCost>& costs,
         const plan::Cluster& cluster)
      : program_(program),
        costs_(costs),
        cluster_(cluster),
        events_(event_graph(program)),
        times_(events_.size()),
        pending_(events_.size()) {}

  Outcome run() {
    visit_all();
    const auto stuck = std::find_if(pending_.begin(), pending_.end(), [](int n) { return n > 0; });
    if (stuck != pending_.end())
      return cycle_from(static_cast<int>(stuck - pending_.begin()));

    plan::Timeline timeline{.name = "predicted",
                            .ranks = static_cast<int>(program_.ranks.size()),
                            .length = {},
                            .spans = spans(),
                            .memory = {}};
    for (const Span& span : timeline.spans)
      timeline.length = std::max(timeline.length, span.end);
    timeline.memory = memory_curve(program_, costs_, timeline.spans);
    return Completed{std::move(timeline)};
  }

 private:
  /// Longest path: an event is timed once all that it waits for has been.
  void visit_all() {
    std::vector<int> ready;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      pending_[i] = static_cast<int>(events_[i].predecessors.size());
      if (pending_[i] == 0)
        ready.push_back(static_cast<int>(i));
    }
    while (!ready.empty()) {
      const auto at = static_cast<std::size_t>(ready.back());
      ready.pop_back();
      finish(at);
      for (const Edge& edge : events_[at].successors) {
        const auto next = static_cast<std::size_t>(edge.event);
        const bool arrives = events_[next].partner == static_cast<int>(at);
        const Seconds from = edge.until == Until::Done ? times_[at].done : times_[at].released;
        // A receive is posted whether or not its data is there yet; `finish` adds the arrival.
        if (!arrives)
          times_[next].start = std::max(times_[next].start, from);
        if (--pending_[next] == 0)
          ready.push_back(edge.event);
      }
    }
  }

  void finish(std::size_t at) {
    const Instruction& i = *events_[at].instruction;
    Times& times = times_[at];
    if (plan::is_send(i.kind)) {
      const plan::Link& link =
          plan::link_between(cluster_, events_[at].rank, plan::peer_rank(program_, i));
      times.released = times.start + plan::occupancy(link, transfer_size(i));
      times.done = times.released + link.latency;
    } else if (plan::is_receive(i.kind)) {
      const Times& send = times_[static_cast<std::size_t>(events_[at].partner)];
      times.done = std::max(times.start, send.done);
      times.released = std::max(times.start, send.released);
    } else {
      times.done = times.released = times.start + duration(i);
    }
  }

  Bytes transfer_size(const Instruction& send) const {
    const plan::StageCost& cost = costs_[static_cast<std::size_t>(send.stage)];
    return send.kind == InstructionKind::SendActivation ? cost.output : cost.input_gradient_bytes;
  }

  Seconds duration(const Instruction& i) const {
    const plan::StageCost& cost = costs_[static_cast<std::size_t>(i.stage)];
    switch (i.kind) {
      case InstructionKind::Load:
        return cost.load;
      case InstructionKind::Forward:
      case InstructionKind::Recompute:
        return cost.forward;
      case InstructionKind::Backward:
        return cost.input_gradient + cost.weight_gradient;
      case InstructionKind::InputGradient:
        return cost.input_gradient;
      case InstructionKind::WeightGradient:
        return cost.weight_gradient;
      case InstructionKind::OptimizerStep:
        return cost.optimizer_step;
      case InstructionKind::SendActivation:
      case InstructionKind::ReceiveActivation:
      case InstructionKind::SendGradient:
      case InstructionKind::ReceiveGradient:
        return {};
    }
    return {};
  }

  std::vector<Span> spans() const {
    std::vector<Span> spans;
    spans.reserve(events_.size());
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const Instruction& instruction = *events_[i].instruction;
      spans.push_back({events_[i].rank, plan::lane_of(instruction.kind),
                       plan::to_string(instruction), times_[i].start, times_[i].done});
    }
    return spans;
  }

  /// Follows what never ran backwards until an event comes up again.
  Deadlock cycle_from(int event) const {
    std::vector<int> path;
    for (auto seen = path.end(); seen == path.end();
         seen = std::find(path.begin(), path.end(), event)) {
      path.push_back(event);
      const auto& before = events_[static_cast<std::size_t>(event)].predecessors;
      event = *std::find_if(before.begin(), before.end(),
                            [&](int b) { return pending_[static_cast<std::size_t>(b)] > 0; });
    }
    Deadlock deadlock;
    for (auto at = std::find(path.begin(), path.end(), event); at != path.end(); ++at) {
      const Event& waiting = events_[static_cast<std::size_t>(*at)];
      deadlock.cycle.push_back(
          fmt::format("rank {}, {}", waiting.rank, plan::to_string(*waiting.instruction)));
    }
    return deadlock;
  }

  const plan::Program& program_;
  const std::vector<plan::StageCost>& costs_;
  const plan::Cluster& cluster_;
  const std::vector<Event> events_;
  std::vector<Times> times_;
  std::vector<int> pending_;  // predecessors not yet timed
};

}  // namespace

Outcome simulate(const plan::Program& program, const std::vector<plan::StageCost>& costs,
                 const plan::Cluster& cluster) {
  if (static_cast<int>(costs.size()) != plan::stage_count(program))
    throw plan::InputError(fmt::format("costs are given for {} stages, but the program has {}",
                                       costs.size(), plan::stage_count(program)));
  return Engine(program, costs, cluster).run();
}

std::string to_string(const Deadlock& deadlock) {
  return fmt::format("{}, which waits for the first",
                     fmt::join(deadlock.cycle, ", which waits for "));
}

}  // namespace pipewright::sim
