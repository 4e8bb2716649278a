#include "pipewright/sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "memory.hpp"
#include "pipewright/plan/deadlock.hpp"
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
        events_(program),
        times_(static_cast<std::size_t>(events_.size())),
        pending_(events_.predecessor_counts()) {}

  Outcome run() {
    visit_all();
    const auto stuck = std::find_if(pending_.begin(), pending_.end(), [](int n) { return n > 0; });
    if (stuck != pending_.end())
      return Deadlock{plan::find_deadlock(events_).value()};

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
    for (int event = 0; event < events_.size(); ++event)
      if (pending_[static_cast<std::size_t>(event)] == 0)
        ready.push_back(event);
    while (!ready.empty()) {
      const int event = ready.back();
      ready.pop_back();
      finish(event);
      const Times& own = times_[static_cast<std::size_t>(event)];
      for (const auto* edge = events_.begin(event); edge != events_.end(event); ++edge) {
        const auto next = static_cast<std::size_t>(edge->event);
        // A receive is posted whether or not its data is there yet; `finish` adds the arrival.
        const bool arrives = plan::is_receive(events_[edge->event].instruction->kind) &&
                             events_[edge->event].partner == event;
        const Seconds from = edge->until == plan::Until::Done ? own.done : own.released;
        if (!arrives)
          times_[next].start = std::max(times_[next].start, from);
        if (--pending_[next] == 0)
          ready.push_back(edge->event);
      }
    }
  }

  void finish(int event) {
    const Instruction& i = *events_[event].instruction;
    Times& times = times_[static_cast<std::size_t>(event)];
    if (plan::is_send(i.kind)) {
      const plan::Link& link =
          plan::link_between(cluster_, events_[event].rank, plan::peer_rank(program_, i));
      times.released = times.start + plan::occupancy(link, transfer_size(i));
      times.done = times.released + link.latency;
    } else if (plan::is_receive(i.kind)) {
      const Times& send = times_[static_cast<std::size_t>(events_[event].partner)];
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
      case InstructionKind::ReduceGradients:
        return reduction(i.stage);
      case InstructionKind::ReduceTied:  // of a weight whose size the stage's costs do not tell
      case InstructionKind::Unshard:     // of one replica: nothing is sharded
      case InstructionKind::Reshard:
      case InstructionKind::SendActivation:
      case InstructionKind::ReceiveActivation:
      case InstructionKind::SendGradient:
      case InstructionKind::ReceiveGradient:
        return {};
    }
    return {};
  }

  /// A ring over the ranks that hold a copy of the stage.
  Seconds reduction(int stage) const {
    const auto ranks = program_.placement.ranks_of(stage);
    Seconds slowest;
    for (std::size_t at = 0; at < ranks.size(); ++at) {
      const auto n = static_cast<double>(ranks.size());
      const plan::Link& link =
          plan::link_between(cluster_, ranks[at], ranks[(at + 1) % ranks.size()]);
      const Seconds whole =
          plan::occupancy(link, costs_[static_cast<std::size_t>(stage)].gradients);
      slowest = std::max(slowest,
                         Seconds{2 * (n - 1) / n * whole.value + 2 * (n - 1) * link.latency.value});
    }
    return slowest;
  }

  std::vector<Span> spans() const {
    std::vector<Span> spans;
    spans.reserve(times_.size());
    for (int event = 0; event < events_.size(); ++event) {
      const Instruction& instruction = *events_[event].instruction;
      const Times& times = times_[static_cast<std::size_t>(event)];
      spans.push_back({events_[event].rank, plan::lane_of(instruction.kind),
                       plan::to_string(instruction), times.start, times.done});
    }
    return spans;
  }

  const plan::Program& program_;
  const std::vector<plan::StageCost>& costs_;
  const plan::Cluster& cluster_;
  const plan::Dependencies events_;
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

}  // namespace pipewright::sim
