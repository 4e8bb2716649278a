#pragma once

// The transfers of a Timeline: which receive takes what which send brings, and for how long it
// waited for the send to begin.

#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// The two ends of a transfer, as places in Timeline::spans.
struct TransferEnds {
  std::size_t send = 0;
  std::size_t receive = 0;
};

/// In the order of the sends: "0SEND_F2" with "1RECV_F2". Where the same text stands several times,
/// as with replicas, the first send goes with the first receive and so on. A send without its
/// receive is left out.
std::vector<TransferEnds> transfers_of(const Timeline& timeline);

/// What a receive is made of.
struct TransferSplit {
  int rank = 0;        // of the receiver
  std::string action;  // "1RECV_F2"
  Seconds waiting;     // the sender had not begun
  Seconds moving;      // it had: what the receiver saw of the transfer itself
  friend bool operator==(const TransferSplit&, const TransferSplit&) = default;
};

/// One for each transfer, in the order of the sends. All ranks must be on one clock.
std::vector<TransferSplit> split_transfers(const Timeline& timeline);

}  // namespace pipewright::plan
