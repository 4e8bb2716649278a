#include "queue_of.hpp"

namespace pipewright::plan {

int queue_of(const Program& program, const Instruction& transfer) {
  const int ranks = static_cast<int>(program.ranks.size());
  switch (program.communicators) {
    case CommunicatorLayout::Edge:
      return peer_rank(program, transfer) + (is_send(transfer.kind) ? ranks : 0);
    case CommunicatorLayout::Pair:
      return peer_rank(program, transfer);
    case CommunicatorLayout::Rank:
      return 0;
  }
  return 0;
}

}  // namespace pipewright::plan
