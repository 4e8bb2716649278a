#pragma once

// Receives placed so early in their rank's list that other transfers of the same in-order queue
// wait for them without need.

#include <string>
#include <vector>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// A receive that blocks its queue, and what it blocks.
struct EarlyTransfer {
  int rank = 0;
  Instruction receive;  // the receive that is placed too early
  Instruction blocked;  // the first later transfer that could go before it
  int held_up = 0;      // number of later transfers that could go before it
};

/// Returns the receives that block a later transfer of their queue without need: the rank uses the
/// received data only after it has produced the data of that send, or after it uses the data of
/// that receive.
std::vector<EarlyTransfer> early_transfers(const Program& program);

/// Returns "rank 1: 1RECV_F3 holds up 1SEND_B0 and 2 more: 1F3 needs it only later".
std::string to_string(const EarlyTransfer& early);

}  // namespace pipewright::plan
