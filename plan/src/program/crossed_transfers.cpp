#include "pipewright/plan/program/crossed_transfers.hpp"

#include <fmt/format.h>

#include <map>

namespace pipewright::plan {

std::vector<CrossedTransfers> crossed_transfers(const Program& program) {
  struct Queue {
    std::vector<Instruction> sends, receives;
  };
  std::map<std::pair<int, int>, Queue> queues;  // (from, to)
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank)
    for (const Instruction& i : program.ranks[static_cast<std::size_t>(rank)]) {
      if (is_send(i.kind))
        queues[{rank, peer_rank(program, i)}].sends.push_back(i);
      if (is_receive(i.kind))
        queues[{peer_rank(program, i), rank}].receives.push_back(i);
    }
  std::vector<CrossedTransfers> crossed;
  for (const auto& [ranks, queue] : queues)
    for (std::size_t at = 0; at < queue.sends.size() && at < queue.receives.size(); ++at)
      if (key_of(counterpart(queue.sends[at])) != key_of(queue.receives[at])) {
        crossed.push_back({ranks.first, ranks.second, queue.sends[at], queue.receives[at]});
        break;
      }
  return crossed;
}

std::string to_string(const CrossedTransfers& crossed) {
  return fmt::format(
      "rank {} sends {} where rank {} receives {}: an in-order queue would swap the tensors",
      crossed.from, to_string(crossed.send), crossed.to, to_string(crossed.receive));
}

}  // namespace pipewright::plan
