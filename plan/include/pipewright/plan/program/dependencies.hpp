#pragma once

// A Program as a graph: one event per instruction, whose edges say what waits for what under the
// Program's communicators and transfers. The validator looks for cycles in it; the simulator for
// its longest path.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "pipewright/plan/large_vector.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// What a successor waits for: the data (a transfer has arrived, compute has ended), or what it
/// holds (the queue and the link of a transfer; the core of compute, whose transfers may keep it).
enum class Until : std::uint8_t { Done, Released };

/// Whether the rank computes nothing else meanwhile: compute itself, and transfers that block.
inline bool holds_compute(const Program& program, InstructionKind kind) {
  return is_compute(kind) || (program.blocking && !is_collective(kind));
}

class Dependencies {
 public:
  struct Successor {
    int event = 0;  // waits
    Until until = Until::Done;
  };
  /// An instruction, with the events that it waits for: those before it on its own rank and the one
  /// that makes its data; -1 where there is none.
  struct Event {
    const Instruction* instruction = nullptr;
    int rank = 0;
    int compute = -1;  // the compute before it: its rank reaches it no earlier
    int queue = -1;  // the transfer before it on its communicator, or the rank's collective before;
                     // of compute, the collective that it waits for
    int data = -1;   // what makes its data; a receive has its send here
    int partner = -1;  // the other end of a send or receive; for a collective's members the first
                       // one, which takes the time and has -1 itself
    int place = 0;     // the in-order list on which it waits: its rank's compute, or a queue
  };

  /// The Program must have passed the checks of `validate` that come before deadlocks: every
  /// transfer has its other end, no instruction stands twice. It must outlive the graph.
  explicit Dependencies(const Program& program);

  int size() const { return static_cast<int>(events_.size()); }
  const Event& operator[](int event) const { return events_[static_cast<std::size_t>(event)]; }
  /// Who waits for this event.
  const Successor* begin(int event) const { return edges_.data() + first_edge(event); }
  const Successor* end(int event) const { return edges_.data() + first_edge(event + 1); }
  /// The event that takes the time: for a collective its first member, else the event itself.
  int leader_of(int event) const {
    const Event& own = (*this)[event];
    return is_collective(own.instruction->kind) && own.partner >= 0 ? own.partner : event;
  }
  /// How many events each one waits for.
  const LargeVector<int>& predecessor_counts() const { return predecessor_counts_; }

  /// Calls `visit(predecessor, until)` for each event that this one waits for.
  template <class Visit>
  void for_each_predecessor(int event, const Visit& visit) const;

 private:
  std::size_t first_edge(int event) const { return first_edge_[static_cast<std::size_t>(event)]; }
  /// Returns the events that have waits for collectives.
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
  // A rendezvous starts when both ends could: what holds back the receive holds back the send.
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
