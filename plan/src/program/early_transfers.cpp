#include "pipewright/plan/program/early_transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "queue_of.hpp"

namespace pipewright::plan {
namespace {

/// The positions of all sends in the lists of their ranks.
using Sends = std::map<std::pair<int, InstructionKey>, std::size_t>;

Sends positions_of_sends(const Program& program) {
  Sends sends;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (std::size_t at = 0; at < program.ranks[rank].size(); ++at)
      if (is_send(program.ranks[rank][at].kind))
        sends[{static_cast<int>(rank), key_of(program.ranks[rank][at])}] = at;
  return sends;
}

/// Examines one rank, from each receive to the use of its data.
class Rank {
 public:
  Rank(const Program& program, int rank, const Sends& sends)
      : program_(program),
        rank_(rank),
        list_(program.ranks[static_cast<std::size_t>(rank)]),
        sends_(sends) {
    std::map<InstructionKey, std::size_t> receive_at;
    use_at_.assign(list_.size(), list_.size());
    for (std::size_t at = 0; at < list_.size(); ++at) {
      if (is_receive(list_[at].kind))
        receive_at[key_of(list_[at])] = at;
      if (const auto kind = receive_for(list_[at].kind)) {
        const auto found = receive_at.find({*kind, list_[at].stage, list_[at].microbatch});
        if (found != receive_at.end())
          use_at_[found->second] = at;
      }
    }
    bring_forward();
  }

  void find(std::vector<EarlyTransfer>& found) const {
    for (std::size_t at = 0; at < list_.size(); ++at) {
      if (!is_receive(list_[at].kind))
        continue;
      EarlyTransfer early{.rank = rank_, .receive = list_[at], .blocked = {}, .held_up = 0};
      for (std::size_t other = at + 1; other < use_at_[at] && other < list_.size(); ++other) {
        if (!is_blocked(other, at))
          continue;
        if (early.held_up++ == 0)
          early.blocked = list_[other];
      }
      if (early.held_up > 0)
        found.push_back(early);
    }
  }

 private:
  /// Moves uses forward: what a peer sends earlier is needed no later than what it sends later,
  /// because transfers arrive in order.
  void bring_forward() {
    // Peer → position of the send → position of the receive.
    std::map<int, std::map<std::size_t, std::size_t>> by_send;
    for (std::size_t at = 0; at < list_.size(); ++at)
      if (is_receive(list_[at].kind)) {
        const int peer = peer_rank(program_, list_[at]);
        const auto send = sends_.find({peer, key_of(counterpart(list_[at]))});
        if (send != sends_.end())
          by_send[peer][send->second] = at;
      }
    for (const auto& [peer, receives] : by_send) {
      std::size_t earliest = list_.size();
      for (auto receive = receives.rbegin(); receive != receives.rend(); ++receive) {
        std::size_t& use = use_at_[receive->second];
        use = earliest = std::min(earliest, use);
      }
    }
  }

  bool is_blocked(std::size_t other, std::size_t receive) const {
    const Instruction& transfer = list_[other];
    if (!is_send(transfer.kind) && !is_receive(transfer.kind))
      return false;
    if (queue_of(program_, transfer) != queue_of(program_, list_[receive]))
      return false;
    return is_send(transfer.kind) || use_at_[other] < use_at_[receive];
  }

  const Program& program_;
  int rank_;
  const std::vector<Instruction>& list_;
  const Sends& sends_;
  std::vector<std::size_t> use_at_;  // by receive: position of its use
};

}  // namespace

std::vector<EarlyTransfer> early_transfers(const Program& program) {
  std::vector<EarlyTransfer> found;
  const Sends sends = positions_of_sends(program);
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank)
    Rank(program, rank, sends).find(found);
  return found;
}

std::string to_string(const EarlyTransfer& early) {
  const char letter = early.receive.kind == InstructionKind::ReceiveActivation ? 'F' : 'B';
  return fmt::format("rank {}: {} holds up {}{}: {}{}{} needs it only later", early.rank,
                     to_string(early.receive), to_string(early.blocked),
                     early.held_up > 1 ? fmt::format(" and {} more", early.held_up - 1) : "",
                     early.receive.stage, letter, early.receive.microbatch);
}

}  // namespace pipewright::plan
