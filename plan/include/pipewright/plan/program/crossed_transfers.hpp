#pragma once

// Transfers between two ranks whose send order differs from their receive order. Real queues (NCCL,
// Gloo) match sends and receives only by their order, so the tensors would be swapped silently.

#include <string>
#include <vector>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// The first mismatch between a directed pair of ranks.
struct CrossedTransfers {
  int from = 0;
  int to = 0;
  Instruction send;     // the first send that would be matched with a wrong receive
  Instruction receive;  // that wrong receive
};

/// Returns at most one entry per directed pair of ranks.
std::vector<CrossedTransfers> crossed_transfers(const Program& program);

/// Returns "rank 0 sends 0SEND_F1 where rank 1 receives 1RECV_F2: an in-order queue would swap the
/// tensors".
std::string to_string(const CrossedTransfers& crossed);

}  // namespace pipewright::plan
