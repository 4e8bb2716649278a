#pragma once

// A Program as a graph: one event per instruction, whose edges say which event waits for which
// under the Program's communicators and transfers. The validator searches it for cycles, the
// simulator for its longest path.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "pipewright/plan/large_vector.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// The condition that a successor waits for. Done: the data is there (a transfer has arrived,
/// compute has ended). Released: the resource is free again (the queue and link of a transfer, or
/// the core of compute, which transfers may still occupy).
enum class Until : std::uint8_t { Done, Released };

/// Returns true if the rank computes nothing else during the instruction: compute itself, and
/// blocking transfers.
inline bool holds_compute(const Program& program, InstructionKind kind) {
  return is_compute(kind) || (program.blocking && !is_collective(kind));
}

class Dependencies {
 public:
  struct Successor {
    int event = 0;  // the waiting event
    Until until = Until::Done;
  };
  /// An instruction, with the events that it waits for: earlier ones on its own rank, and the one
  /// that produces its data; -1 if there is none.
  struct Event {
    const Instruction* instruction = nullptr;
    int rank = 0;
    int compute = -1;  // the previous compute on its rank, which must come first
    /// The previous transfer on its communicator, or the rank's previous collective; for compute,
    /// the collective that it waits for.
    int queue = -1;
    int data = -1;  // the event that produces its data; for a receive, its send
    /// The other end of a send or receive; for members of a collective the first member, which
    /// takes the time and has -1 itself.
    int partner = -1;
    int place = 0;  // the in-order list in which it waits: its rank's compute, or a queue
  };

  /// The Program must have passed the checks of `validate` that precede the deadlock check: every
  /// transfer has its other end, and no instruction occurs twice. It must outlive the graph.
  explicit Dependencies(const Program& program);

  int size() const { return static_cast<int>(events_.size()); }
  const Event& operator[](int event) const { return events_[static_cast<std::size_t>(event)]; }
  /// The successors, which wait for this event.
  const Successor* begin(int event) const { return edges_.data() + first_edge(event); }
  const Successor* end(int event) const { return edges_.data() + first_edge(event + 1); }
  /// Returns the event that takes the time: the first member of a collective, else the event
  /// itself.
  int leader_of(int event) const {
    const Event& own = (*this)[event];
    return is_collective(own.instruction->kind) && own.partner >= 0 ? own.partner : event;
  }
  /// Returns the number of events that each event waits for.
  const LargeVector<int>& predecessor_counts() const { return predecessor_counts_; }

  /// Calls `visit(predecessor, until)` for each event that this one waits for.
  template <class Visit>
  void for_each_predecessor(int event, const Visit& visit) const;

 private:
  std::size_t first_edge(int event) const { return first_edge_[static_cast<std::size_t>(event)]; }
  /// Returns the events that take part in collectives or wait for them.
  std::vector<int> link_events();
  void join_collectives(const std::vector<int>& meeting);
  void make_edges();

  const Program& program_;
  LargeVector<Event> events_;
  std::vector<std::pair<int, int>> collective_waits_;  // (event, predecessor), by event
  LargeVector<std::uint32_t> first_edge_;              // into edges_, one more than events
  LargeVector<Successor> edges_;
  LargeVector<int> predecessor_counts_;
};

template <class Visit>
void Dependencies::for_each_predecessor(int event, const Visit& visit) const {
  const Event& own = (*this)[event];
  if (own.compute >= 0) {
    const bool both_compute =
        is_compute(own.instruction->kind) && is_compute((*this)[own.compute].instruction->kind);
    visit(own.compute, both_compute ? Until::Released : Until::Done);
  }
  if (own.queue >= 0)
    visit(own.queue, Until::Released);
  if (own.data >= 0)
    visit(own.data, Until::Done);
  // A rendezvous starts when both ends can, so a send also waits for whatever delays its receive.
  if (program_.transfers == TransferMode::Rendezvous && is_send(own.instruction->kind)) {
    const Event& receive = (*this)[own.partner];
    if (receive.compute >= 0)
      visit(receive.compute, Until::Done);
    if (receive.queue >= 0)
      visit(receive.queue, Until::Released);
  }
  if (has_collective_waits(own.instruction->kind))
    for (auto wait = std::lower_bound(collective_waits_.begin(), collective_waits_.end(),
                                      std::pair{event, -1});
         wait != collective_waits_.end() && wait->first == event; ++wait)
      visit(wait->second, Until::Done);
}

}  // namespace pipewright::plan
