#include "event_graph.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace pipewright::sim {
namespace {

using plan::CommunicatorLayout;
using plan::Instruction;
using plan::InstructionKind;

class Builder {
 public:
  explicit Builder(const plan::Program& program) : program_(program) {}

  std::vector<Event> run() {
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      for (const Instruction& i : program_.ranks[rank]) {
        index_[plan::key_of(i)] = static_cast<int>(events_.size());
        events_.push_back({.instruction = &i, .rank = static_cast<int>(rank)});
      }
    int event = 0;
    for (const auto& instructions : program_.ranks) {
      lane_ = -1;
      queues_.clear();
      for (const Instruction& i : instructions)
        connect(event++, i);
    }
    if (program_.transfers == plan::TransferMode::Rendezvous)
      join_ends();
    return std::move(events_);
  }

 private:
  Event& at(int event) { return events_[static_cast<std::size_t>(event)]; }

  void wait(int event, int predecessor, Until until) {
    if (predecessor < 0)
      return;
    at(predecessor).successors.push_back({event, until});
    at(event).predecessors.push_back(predecessor);
  }

  int find(InstructionKind kind, int stage, int microbatch) const {
    const auto found = index_.find({kind, stage, microbatch});
    return found == index_.end() ? -1 : found->second;
  }

  void connect(int event, const Instruction& i) {
    wait(event, lane_, Until::Done);
    if (!plan::is_compute(i.kind)) {
      int& queue = queues_.try_emplace(queue_of(i), -1).first->second;
      wait(event, queue, Until::Released);
      queue = event;
    }
    if (plan::is_receive(i.kind)) {
      at(event).partner = index_.at(plan::key_of(plan::counterpart(i)));
      wait(event, at(event).partner, Until::Done);
    }
    for (const int input : inputs_of(i))
      if (input != event)
        wait(event, input, Until::Done);
    if (plan::is_compute(i.kind) || program_.blocking)
      lane_ = event;
  }

  /// Names the in-order queue of a transfer on its own rank.
  std::pair<int, int> queue_of(const Instruction& transfer) const {
    const int peer = plan::peer_rank(program_, transfer);
    switch (program_.communicators) {
      case CommunicatorLayout::Edge:
        return {peer, plan::is_send(transfer.kind) ? 1 : 0};
      case CommunicatorLayout::Pair:
        return {peer, 0};
      case CommunicatorLayout::Rank:
        return {0, 0};
    }
    return {0, 0};
  }

  /// What the action takes from other events: a receive on this rank or a stage on this rank.
  std::vector<int> inputs_of(const Instruction& i) const {
    const auto m = i.microbatch;
    switch (i.kind) {
      case InstructionKind::Forward:
        return {find(InstructionKind::ReceiveActivation, i.stage, m),
                same_rank(i.stage, i.stage - 1, InstructionKind::Forward, m)};
      case InstructionKind::Backward:
      case InstructionKind::InputGradient:
        return {find(InstructionKind::ReceiveGradient, i.stage, m),
                same_rank(i.stage, i.stage + 1, InstructionKind::Backward, m),
                same_rank(i.stage, i.stage + 1, InstructionKind::InputGradient, m)};
      case InstructionKind::Load:
      case InstructionKind::WeightGradient:
      case InstructionKind::Recompute:
      case InstructionKind::SendActivation:
      case InstructionKind::ReceiveActivation:
      case InstructionKind::SendGradient:
      case InstructionKind::ReceiveGradient:
      case InstructionKind::OptimizerStep:
        return {};
    }
    return {};
  }

  int same_rank(int stage, int neighbour, InstructionKind kind, int microbatch) const {
    if (neighbour < 0 || neighbour >= plan::stage_count(program_))
      return -1;
    const auto& ranks = program_.rank_of_stage;
    if (ranks[static_cast<std::size_t>(stage)] != ranks[static_cast<std::size_t>(neighbour)])
      return -1;
    return find(kind, neighbour, microbatch);
  }

  /// Rendezvous: a send starts when the receive could start too, so what holds back the receive
  /// holds back the send.
  void join_ends() {
    for (std::size_t event = 0; event < events_.size(); ++event) {
      const int send = events_[event].partner;
      if (send < 0)
        continue;
      for (const int before : std::vector<int>(events_[event].predecessors)) {
        if (before == send)
          continue;
        const auto& edges = at(before).successors;
        const auto edge = std::find_if(edges.begin(), edges.end(), [&](const Edge& e) {
          return e.event == static_cast<int>(event);
        });
        wait(send, before, edge->until);
      }
    }
  }

  const plan::Program& program_;
  std::vector<Event> events_;
  std::map<plan::InstructionKey, int> index_;
  int lane_ = -1;                              // the event that holds this rank's lane last
  std::map<std::pair<int, int>, int> queues_;  // the last event of each queue of this rank
};

}  // namespace

std::vector<Event> event_graph(const plan::Program& program) { return Builder(program).run(); }

}  // namespace pipewright::sim
