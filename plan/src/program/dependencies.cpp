#include "pipewright/plan/program/dependencies.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>

#include "pipewright/plan/program/instruction_index.hpp"
#include "queue_of.hpp"

namespace pipewright::plan {
namespace {

/// Returns the event that produces the input of `i`, or -1 if the compute before it does.
int data_of(const Program& program, const InstructionIndex& index, const Instruction& i) {
  if (traits_of(i.kind).needs == Needs::OtherEnd)
    return index.find(counterpart(i));
  const auto kind = receive_for(i.kind);
  if (!kind)
    return -1;
  const Instruction receive{*kind, i.stage, i.microbatch};
  const int from = peer_stage(receive);
  if (from < 0 || from >= stage_count(program))
    return -1;
  if (crosses_ranks(program, i.stage, from, i.microbatch))
    return index.find(receive);
  const auto makers = makers_for(*kind);
  return std::max(index.find(makers[0], from, i.microbatch),
                  index.find(makers[1], from, i.microbatch));
}

/// A list of events that run one after the other: a queue, or the collectives of a rank.
struct InOrder {
  int last = -1;   // its newest event
  int place = -1;  // see Dependencies::Event; -1 before its first event

  void append(int number, Dependencies::Event& event, int& places) {
    event.queue = std::exchange(last, number);
    if (place < 0)
      place = places++;
    event.place = place;
  }
};

}  // namespace

Dependencies::Dependencies(const Program& program) : program_(program) {
  join_collectives(link_events());
  make_edges();
}

std::vector<int> Dependencies::link_events() {
  std::vector<int> meeting;
  const std::size_t ranks = program_.ranks.size();
  InstructionIndex index(program_);
  std::size_t count = 0;
  for (const auto& instructions : program_.ranks)
    count += instructions.size();
  events_.reserve(count);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (const Instruction& i : program_.ranks[rank]) {
      if (has_microbatch(i.kind))
        index.insert(i, size());
      events_.push_back({.instruction = &i, .rank = static_cast<int>(rank)});
    }

  int places = static_cast<int>(ranks);  // the first ones are the ranks' compute
  std::vector<InOrder> queues;
  int number = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    int compute = -1;
    InOrder collectives;          // a rank runs its collectives one after the other
    int scatter = -1;             // the newest gradient reduction of a microbatch
    std::map<int, int> unshards;  // by stage: the newest
    queues.assign(2 * ranks, {});
    for (const Instruction& i : program_.ranks[rank]) {
      Event& event = events_[static_cast<std::size_t>(number)];
      event.compute = compute;
      event.place = static_cast<int>(rank);
      if (has_microbatch(i.kind))
        event.data = data_of(program_, index, i);
      if (is_send(i.kind) || is_receive(i.kind)) {
        event.partner = index.find(counterpart(i));
        queues[static_cast<std::size_t>(queue_of(program_, i))].append(number, event, places);
      } else if (is_collective(i.kind)) {
        collectives.append(number, event, places);
      } else if (traits_of(i.kind).action) {
        // A rank holds the whole gradients of one microbatch at a time, and computes with gathered
        // parameters. Of two collectives, the later one ends last.
        event.queue = makes_weight_gradient(i.kind) ? scatter : -1;
        if (const auto found = unshards.find(i.stage); found != unshards.end())
          event.queue = std::max(event.queue, found->second);
      }
      if (i.kind == InstructionKind::ScatterMicrobatch)
        scatter = number;
      else if (i.kind == InstructionKind::Unshard)
        unshards[i.stage] = number;
      if (has_collective_waits(i.kind))
        meeting.push_back(number);
      if (holds_compute(program_, i.kind))
        compute = number;
      ++number;
    }
  }
  return meeting;
}

/// Adds the dependencies of collectives. A collective starts once all its ranks have reached it and
/// finished the collectives before it. Its first member waits for that and takes the time; the
/// other members end with it. A stage's optimizer steps once the collectives before it in the list
/// are over.
void Dependencies::join_collectives(const std::vector<int>& meeting) {
  std::map<std::tuple<InstructionKind, int, int>, std::vector<int>> members;
  // By rank and stage: count so far, since the nth of each rank belong together.
  std::map<std::pair<int, int>, int> unshards;
  for (const int event : meeting) {
    const Instruction& i = *(*this)[event].instruction;
    if (!is_collective(i.kind))
      continue;
    const bool recurs = i.kind == InstructionKind::Unshard;
    const int which = recurs ? unshards[{(*this)[event].rank, i.stage}]++ : i.microbatch;
    members[{i.kind, group_of(i.kind) == Group::Copies ? i.stage : 0, which}].push_back(event);
  }
  for (const auto& [key, events] : members) {
    const int first = events.front();
    for (const int member : events) {
      const Event& own = (*this)[member];
      for (const int before : {own.compute, own.queue})
        if (member != first && before >= 0)
          collective_waits_.emplace_back(first, before);
      if (member != first) {
        events_[static_cast<std::size_t>(member)].partner = first;
        collective_waits_.emplace_back(member, first);
      }
    }
  }
  int last_collective = -1;
  for (const int event : meeting) {
    const Event& own = (*this)[event];
    if (is_collective(own.instruction->kind))
      last_collective = event;
    if (traits_of(own.instruction->kind).waits_for_collectives && last_collective >= 0 &&
        (*this)[last_collective].rank == own.rank)
      collective_waits_.emplace_back(event, last_collective);
  }
  std::sort(collective_waits_.begin(), collective_waits_.end());
}

void Dependencies::make_edges() {
  predecessor_counts_.assign(events_.size(), 0);
  // While edges are inserted, first_edge_ is shifted by one.
  first_edge_.assign(events_.size() + 2, 0);
  for (int event = 0; event < size(); ++event)
    for_each_predecessor(event, [&](int predecessor, Until) {
      ++predecessor_counts_[static_cast<std::size_t>(event)];
      ++first_edge_[static_cast<std::size_t>(predecessor) + 2];
    });
  for (std::size_t i = 1; i < first_edge_.size(); ++i)
    first_edge_[i] += first_edge_[i - 1];
  edges_.resize(first_edge_.back());
  for (int event = 0; event < size(); ++event)
    for_each_predecessor(event, [&](int predecessor, Until until) {
      edges_[first_edge_[static_cast<std::size_t>(predecessor) + 1]++] = {event, until};
    });
  first_edge_.pop_back();
}

}  // namespace pipewright::plan
