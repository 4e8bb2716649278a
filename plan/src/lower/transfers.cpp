#include <algorithm>

#include "pipewright/plan/lower/lower.hpp"
#include "transfers_of.hpp"

namespace pipewright::plan {

namespace {

/// Returns the transfer of this kind for the action, if its other end is on another rank.
std::optional<Instruction> across_ranks(const Program& program, const Instruction& i,
                                        std::optional<InstructionKind> kind) {
  if (!kind)
    return {};
  const Instruction transfer{*kind, i.stage, i.microbatch};
  if (!crosses_ranks(program, i.stage, peer_stage(transfer), i.microbatch))
    return {};
  return transfer;
}

}  // namespace

std::optional<Instruction> receive_of(const Program& program, const Instruction& i) {
  return across_ranks(program, i, receive_for(i.kind));
}

std::optional<Instruction> send_of(const Program& program, const Instruction& i) {
  const auto receive = receive_for(i.kind);
  return receive ? across_ranks(program, i, traits_of(*receive).other_end) : std::nullopt;
}

namespace {

/// Instructions in flight from one rank to another, in the order in which they are sent.
using Edges = std::vector<std::vector<Instruction>>;

/// Returns the receives of each directed pair of ranks (index from * ranks + to) in the order of
/// their sends.
Edges receives_by_edge(const Program& program) {
  const std::size_t ranks = program.ranks.size();
  Edges edges(ranks * ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (const Instruction& i : program.ranks[rank])
      if (const auto send = send_of(program, i)) {
        const auto to = static_cast<std::size_t>(peer_rank(program, *send));
        auto& edge = edges[rank * ranks + to];
        if (edge.empty())
          edge.reserve(program.ranks[rank].size());  // an unused edge allocates nothing
        edge.push_back(counterpart(*send));
      }
  return edges;
}

/// Lowers one rank. In-order queues match the k-th receive with the k-th send. So a receive that is
/// needed also places the receives whose sends precede its own.
class RankLowering {
 public:
  RankLowering(const Program& program, std::size_t rank, const Edges& edges)
      : program_(program), rank_(rank), edges_(edges), taken_(program.ranks.size(), 0) {}

  std::vector<Instruction> run() && {
    const auto& list = program_.ranks[rank_];
    lowered_.reserve(3 * list.size());
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t end = at + (list[at].fused_with_next ? 2 : 1);
      for (std::size_t i = at; i < end; ++i)
        if (const auto receive = receive_of(program_, list[i]))
          take(*receive);
      for (std::size_t i = at; i < end; ++i)
        lowered_.push_back(list[i]);
      for (std::size_t i = at; i < end; ++i)
        if (const auto send = send_of(program_, list[i]))
          lowered_.push_back(*send);
      at = end;
    }
    return std::move(lowered_);
  }

 private:
  void take(const Instruction& receive) {
    const auto from = static_cast<std::size_t>(peer_rank(program_, receive));
    const auto& queue = edges_[from * program_.ranks.size() + rank_];
    std::size_t& next = taken_[from];
    const auto wanted =
        std::find(queue.begin() + static_cast<std::ptrdiff_t>(next), queue.end(), receive);
    if (wanted == queue.end())
      return;  // already placed, together with a receive that was sent later
    const auto end = static_cast<std::size_t>(wanted - queue.begin()) + 1;
    for (; next < end; ++next)
      lowered_.push_back(queue[next]);
  }

  const Program& program_;
  std::size_t rank_;
  const Edges& edges_;
  std::vector<std::size_t> taken_;  // by source rank: number of receives placed
  std::vector<Instruction> lowered_;
};

}  // namespace

Program with_transfers(Program program) {
  const Edges edges = receives_by_edge(program);
  std::vector<std::vector<Instruction>> lowered;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    lowered.push_back(RankLowering(program, rank, edges).run());
  program.ranks = std::move(lowered);
  return program;
}

}  // namespace pipewright::plan
