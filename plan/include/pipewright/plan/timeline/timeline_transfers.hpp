#pragma once

// Transfers of a Timeline: pairs of a send and its receive, and how long the receive waited for the
// send to begin.

#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::plan {

/// The two ends of a transfer, as indices into Timeline::spans.
struct TransferEnds {
  std::size_t send = 0;
  std::size_t receive = 0;
};

/// Returns the transfers in the order of the sends: "0SEND_F2" with "1RECV_F2". If the same text
/// occurs several times, as with replicas, the first send is paired with the first receive and so
/// on. A send without a receive is left out.
std::vector<TransferEnds> transfers_of(const Timeline& timeline);

/// The two parts of a receive's duration.
struct TransferSplit {
  int rank = 0;        // of the receiver
  std::string action;  // "1RECV_F2"
  Seconds waiting;     // until the sender began
  Seconds moving;      // after that: the visible time of the transfer itself
  friend bool operator==(const TransferSplit&, const TransferSplit&) = default;
};

/// Returns one entry per transfer, in the order of the sends. All ranks must be on one clock.
std::vector<TransferSplit> split_transfers(const Timeline& timeline);

}  // namespace pipewright::plan
