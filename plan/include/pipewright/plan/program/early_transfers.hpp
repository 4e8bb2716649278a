#pragma once

// Receives that stand so early in their rank's list that other transfers of the same in-order queue
// have to wait behind them for no reason.

#include <string>
#include <vector>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

struct EarlyTransfer {
  int rank = 0;
  Instruction receive;  // that stands too early
  Instruction blocked;  // the first transfer behind it that could go before
  int held_up = 0;      // how many transfers in all stand behind it and could go before
};

/// A receive blocks a transfer behind it in its queue when the rank needs the received data only
/// after it has made what the other sends, or after it needs what the other receives.
std::vector<EarlyTransfer> early_transfers(const Program& program);

/// "rank 1: 1RECV_F3 holds up 1SEND_B0 and 2 more: 1F3 needs it only later".
std::string to_string(const EarlyTransfer& early);

}  // namespace pipewright::plan
