#include "pipewright/sim/structure/structure.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/program/fused_pairs.hpp"
#include "pipewright/sim/structure/times.hpp"
#include "reduced_graph.hpp"

namespace pipewright::sim {

Structure::Structure(plan::Program program) : program_(std::move(program)), events_(program_) {
  for (int stage = 0; stage < plan::stage_count(program_); ++stage)
    ranks_of_stage_.push_back(program_.placement.ranks_of(stage));
  all_ranks_.resize(program_.ranks.size());
  std::iota(all_ranks_.begin(), all_ranks_.end(), 0);
  for (int event = 0; event < size(); ++event)
    if (const int leader = events_.leader_of(event); leader != event)
      followers_.emplace_back(event, leader);
  sort_events();
  find_recomputed();
  find_pairs();
  find_classes();
  make_timed_events();
}

const ReducedGraph* Structure::reduced() const {
  if (asked_.load(std::memory_order_relaxed) < asks_before_reduction &&
      asked_++ < asks_before_reduction)
    return nullptr;
  return &reduce();
}

const ReducedGraph& Structure::reduce() const {
  std::call_once(reducing_, [this] {
    reduced_ = std::make_unique<const ReducedGraph>(program_, events_, order_, class_of_);
  });
  return *reduced_;
}

Structure::~Structure() = default;

void Structure::begin_together(Times& times) const {
  for (const auto& [event, leader] : followers_)
    times.events[static_cast<std::size_t>(event)].start = times[leader].start;
}

/// Sorts the events in rounds: all compute that is ready, then all sends, then all others. Events
/// that run at about the same time are then close to each other in memory, and the engine's loop
/// handles one kind many times in a row, which processors can predict.
void Structure::sort_events() {
  plan::LargeVector<int> pending = events_.predecessor_counts();
  std::vector<std::uint8_t> turns;  // by event: small enough for the cache
  turns.reserve(pending.size());
  for (int event = 0; event < events_.size(); ++event) {
    const plan::InstructionKind kind = events_[event].instruction->kind;
    turns.push_back(plan::is_compute(kind) ? 0 : plan::is_send(kind) ? 1 : 2);
  }
  std::array<std::vector<int>, 3> ready;
  const auto add = [&](int event) {
    ready[turns[static_cast<std::size_t>(event)]].push_back(event);
  };
  order_.reserve(pending.size());
  for (int event = 0; event < events_.size(); ++event)
    if (pending[static_cast<std::size_t>(event)] == 0)
      add(event);
  std::vector<int> now;
  const auto is_empty = [](const std::vector<int>& events) { return events.empty(); };
  while (!std::all_of(ready.begin(), ready.end(), is_empty))
    for (std::vector<int>& of_one_kind : ready) {
      now.clear();
      std::swap(now, of_one_kind);
      for (const int event : now) {
        order_.push_back(event);
        for (const auto* edge = events_.begin(event); edge != events_.end(event); ++edge)
          if (--pending[static_cast<std::size_t>(edge->event)] == 0)
            add(edge->event);
      }
    }
  if (static_cast<int>(order_.size()) < events_.size())
    throw plan::Infeasible(plan::find_deadlock(events_).value());
}

void Structure::find_recomputed() {
  std::vector<char> again;  // by stage and microbatch
  const auto place = [&](const plan::Instruction& i) {
    return static_cast<std::size_t>(i.stage) * static_cast<std::size_t>(program_.microbatches) +
           static_cast<std::size_t>(i.microbatch);
  };
  for (int event = 0; event < size(); ++event) {
    const plan::Instruction& i = *events_[event].instruction;
    if (!plan::runs_forward_again(i.kind))
      continue;
    again.resize(static_cast<std::size_t>(plan::stage_count(program_)) *
                 static_cast<std::size_t>(program_.microbatches));
    again[place(i)] = 1;
  }
  for (int event = 0; event < size() && !again.empty(); ++event) {
    const plan::Instruction& i = *events_[event].instruction;
    recomputes_.push_back(i.microbatch < 0 ? 0 : again[place(i)]);
  }
}

void Structure::find_pairs() {
  int event = 0;
  for (const auto& list : program_.ranks)
    for (std::size_t at = 0; at < list.size(); ++at, ++event) {
      if (!plan::begins_pair(list, at))
        continue;
      pair_of_.resize(static_cast<std::size_t>(size()), -1);
      pair_of_[static_cast<std::size_t>(event)] = event + 1;
      pair_of_[static_cast<std::size_t>(event) + 1] = event;
    }
}

bool Structure::are_paired_alike(int event, int other) const {
  const int own = pair_of(event), theirs = pair_of(other);
  if (own < 0 || theirs < 0)
    return own == theirs;
  const plan::Instruction &a = *events_[own].instruction, &b = *events_[theirs].instruction;
  return a.kind == b.kind && a.stage == b.stage;
}

void Structure::find_classes() {
  const auto other_rank = [&](int event) {
    const int partner = events_[event].partner;
    return partner < 0 ? -1 : events_[partner].rank;
  };
  // By kind and stage: one class for each pair of ranks; there are few pairs.
  const auto stages = static_cast<std::size_t>(plan::stage_count(program_));
  std::vector<std::vector<int>> classes;
  class_of_.reserve(static_cast<std::size_t>(size()));
  for (int event = 0; event < size(); ++event) {
    const auto& own = events_[event];
    const std::size_t place = static_cast<std::size_t>(own.instruction->kind) * stages +
                              static_cast<std::size_t>(own.instruction->stage);
    if (place >= classes.size())
      classes.resize(place + 1);
    const auto alike = [&](int known) {
      const int first = representatives_[static_cast<std::size_t>(known)];
      return events_[first].rank == own.rank && other_rank(first) == other_rank(event) &&
             recomputes(first) == recomputes(event) && are_paired_alike(first, event);
    };
    // The newest class first, because events come rank by rank.
    const auto found = std::find_if(classes[place].rbegin(), classes[place].rend(), alike);
    if (found == classes[place].rend()) {
      classes[place].push_back(static_cast<int>(representatives_.size()));
      representatives_.push_back(event);
      class_of_.push_back(classes[place].back());
    } else {
      class_of_.push_back(*found);
    }
    const bool ties = plan::group_of(own.instruction->kind) == plan::Group::Tied;
    if (ties && (tied_ranks_.empty() || tied_ranks_.back() != own.rank))
      tied_ranks_.push_back(own.rank);
  }
}

void Structure::make_timed_events() {
  using Kind = TimedEvent::Kind;
  const auto kind_of = [&](plan::InstructionKind kind) {
    if (plan::is_receive(kind))
      return Kind::Receive;
    if (plan::is_send(kind))
      return program_.transfers == plan::TransferMode::Eager ? Kind::EagerSend : Kind::Other;
    return plan::has_collective_waits(kind) ? Kind::Other : Kind::Compute;
  };
  std::vector<Kind> kinds;  // by class
  kinds.reserve(representatives_.size());
  for (const int event : representatives_)
    kinds.push_back(kind_of(events_[event].instruction->kind));
  timed_events_.reserve(order_.size());
  for (const int event : order_) {
    const auto& own = events_[event];
    const int own_class = class_of(event);
    timed_events_.push_back({.event = event,
                             .compute = own.compute,
                             .queue = own.queue,
                             .data = own.data,
                             .cost_class = own_class,
                             .kind = kinds[static_cast<std::size_t>(own_class)]});
  }
}

}  // namespace pipewright::sim
