#pragma once

// Transfers between two ranks that are sent in one order and received in another. Real queues
// (NCCL, Gloo) match sends and receives by their order alone: the tensors would be swapped without
// a word.

#include <string>
#include <vector>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

struct CrossedTransfers {
  int from = 0;
  int to = 0;
  Instruction send;     // the first one that meets another's receive
  Instruction receive;  // that stands there in its place
};

/// At most one entry for each directed pair of ranks.
std::vector<CrossedTransfers> crossed_transfers(const Program& program);

/// "rank 0 sends 0SEND_F1 where rank 1 receives 1RECV_F2: an in-order queue would swap the
/// tensors".
std::string to_string(const CrossedTransfers& crossed);

}  // namespace pipewright::plan
