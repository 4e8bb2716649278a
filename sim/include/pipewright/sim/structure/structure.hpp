#pragma once

// A Program made ready to be timed again and again: what waits for what, and an order in which
// everything comes after what it waits for. It knows no costs, so it is built once and serves every
// cost vector, in every thread.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "pipewright/plan/program/dependencies.hpp"

namespace pipewright::sim {

class ReducedGraph;
struct Times;

/// What the inner loop of the engine reads of an event; -1 where there is nothing.
struct TimedEvent {
  enum class Kind : std::uint8_t { Compute, EagerSend, Receive, Other };
  int event = 0;
  int compute = -1;  // waits until this one is over
  int queue = -1;    // … has been released
  int data = -1;     // … is over; of a receive: its send
  int cost_class = 0;
  Kind kind = Kind::Other;  // Other: waits for more than these
};

class Structure {
 public:
  /// The Program must be valid but for deadlocks. Throws plan::Infeasible with the cycle in words
  /// when some ranks would wait for each other for ever.
  explicit Structure(plan::Program program);
  ~Structure();
  Structure(const Structure&) = delete;
  Structure& operator=(const Structure&) = delete;

  const plan::Program& program() const { return program_; }
  /// One event per instruction, numbered rank by rank in the order of the lists.
  const plan::Dependencies& events() const { return events_; }
  int size() const { return events_.size(); }
  /// Every event once, behind all that it waits for.
  const plan::LargeVector<int>& order() const { return order_; }

  /// Events with one number cost the same as long as microbatches do: same kind, stage, rank and
  /// other end, recomputed all or none, and fused with the same kind and stage.
  int class_of(int event) const { return class_of_[static_cast<std::size_t>(event)]; }
  /// One event of each class.
  const std::vector<int>& representatives() const { return representatives_; }

  /// Whether the Program has a Recompute for the event's stage and microbatch.
  bool runs_again(int event) const {
    return !runs_again_.empty() && runs_again_[static_cast<std::size_t>(event)] != 0;
  }

  /// What the event's action is fused with; -1: with nothing.
  int pair_of(int event) const {
    return pair_of_.empty() ? -1 : pair_of_[static_cast<std::size_t>(event)];
  }

  /// As Placement::ranks_of.
  const std::vector<int>& ranks_of(int stage) const {
    return ranks_of_stage_[static_cast<std::size_t>(stage)];
  }
  /// The ranks that take part in tied reductions, in rising order.
  const std::vector<int>& tied_ranks() const { return tied_ranks_; }

  const std::vector<int>& all_ranks() const { return all_ranks_; }
  /// Whoever takes part in a collective begins with the member that takes its time.
  void begin_together(Times& times) const;
  /// Of collectives: (event, leader), where these are two.
  const std::vector<std::pair<int, int>>& followers() const { return followers_; }

  /// The same events in the same order, ready to be timed.
  const plan::LargeVector<TimedEvent>& timed_events() const { return timed_events_; }
  /// For iteration times alone. Null for the first who ask, `asks_before_reduction` of them: making
  /// it takes as long as about so many runs over all events.
  const ReducedGraph* reduced() const;
  /// The same for who knows that he will ask often.
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
  std::vector<char> runs_again_;  // by event; empty: none does
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
