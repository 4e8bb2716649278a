#pragma once

// A Program prepared to be timed repeatedly: the dependencies of its events, and an order in which
// every event comes after those that it waits for. It contains no costs, so it is built once and
// serves all costs in all threads.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "pipewright/plan/program/dependencies.hpp"

namespace pipewright::sim {

class ReducedGraph;
struct Times;

/// The fields of an event that the engine's inner loop reads; -1: none.
struct TimedEvent {
  enum class Kind : std::uint8_t { Compute, EagerSend, Receive, Other };
  int event = 0;
  int compute = -1;  // waits until this event has ended
  int queue = -1;    // … until this event has been released
  int data = -1;     // … until this event has ended; for a receive: its send
  int cost_class = 0;
  Kind kind = Kind::Other;  // Other: has further dependencies
};

class Structure {
 public:
  /// The Program must be valid except for deadlocks. Throws plan::Infeasible that describes the
  /// cycle if some ranks would wait for each other forever.
  explicit Structure(plan::Program program);
  ~Structure();
  Structure(const Structure&) = delete;
  Structure& operator=(const Structure&) = delete;

  const plan::Program& program() const { return program_; }
  /// One event per instruction, numbered rank by rank in the order of the lists.
  const plan::Dependencies& events() const { return events_; }
  int size() const { return events_.size(); }
  /// Returns every event once, after all events that it waits for.
  const plan::LargeVector<int>& order() const { return order_; }

  /// Returns the event's cost class. Events of one class cost the same if their microbatches are of
  /// equal length: they have the same kind, stage, rank and other end, all or none are recomputed,
  /// and they are fused with the same kind and stage.
  int class_of(int event) const { return class_of_[static_cast<std::size_t>(event)]; }
  /// One event of each class.
  const std::vector<int>& representatives() const { return representatives_; }

  /// Returns true if the Program has a Recompute for the event's stage and microbatch.
  bool recomputes(int event) const {
    return !recomputes_.empty() && recomputes_[static_cast<std::size_t>(event)] != 0;
  }

  /// Returns the event that the event's action is fused with, or -1.
  int pair_of(int event) const {
    return pair_of_.empty() ? -1 : pair_of_[static_cast<std::size_t>(event)];
  }

  /// Like Placement::ranks_of.
  const std::vector<int>& ranks_of(int stage) const {
    return ranks_of_stage_[static_cast<std::size_t>(stage)];
  }
  /// Returns the ranks that take part in tied reductions, in ascending order.
  const std::vector<int>& tied_ranks() const { return tied_ranks_; }

  const std::vector<int>& all_ranks() const { return all_ranks_; }
  /// Sets the start of all members of a collective to that of its leader.
  void begin_together(Times& times) const;
  /// Returns (event, leader) for each member of a collective that is not its leader.
  const std::vector<std::pair<int, int>>& followers() const { return followers_; }

  /// Returns the same events in the same order, prepared for timing.
  const plan::LargeVector<TimedEvent>& timed_events() const { return timed_events_; }
  /// Returns a smaller graph that gives iteration times only. Null for the first
  /// `asks_before_reduction` calls: building the graph takes about as long as that many runs over
  /// all events.
  const ReducedGraph* reduced() const;
  /// Builds and returns the same graph at once, for callers that will need it often.
  const ReducedGraph& reduce() const;
  static constexpr int asks_before_reduction = 20;

 private:
  void sort_events();
  void find_recomputed();
  void find_pairs();
  bool are_paired_alike(int event, int other) const;
  void find_classes();
  void make_timed_events();

  const plan::Program program_;
  const plan::Dependencies events_;
  plan::LargeVector<int> order_;
  plan::LargeVector<int> class_of_;
  std::vector<int> representatives_;
  std::vector<char> recomputes_;  // by event; empty: none is recomputed
  std::vector<int> pair_of_;      // by event; empty: nothing is fused
  std::vector<std::vector<int>> ranks_of_stage_;
  std::vector<int> tied_ranks_;
  std::vector<int> all_ranks_;
  std::vector<std::pair<int, int>> followers_;  // of collectives: (event, leader)
  plan::LargeVector<TimedEvent> timed_events_;
  mutable std::atomic<int> asked_ = 0;
  mutable std::once_flag reducing_;
  mutable std::unique_ptr<const ReducedGraph> reduced_;
};

}  // namespace pipewright::sim
