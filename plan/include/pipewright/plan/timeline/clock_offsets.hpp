#pragma once

// Offsets between the clocks of ranks: a message cannot arrive before it was sent, which bounds how
// far two clocks are apart.

#include <string>
#include <vector>

#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// A message from one rank to another, with the send and arrival times each by that rank's own
/// clock.
struct ClockObservation {
  int from = 0;
  int to = 0;
  Seconds sent;
  Seconds arrived;
};

/// The reference clock of a rank, which other ranks may read as well, such as a machine's, and its
/// reading when the rank's clock was 0.
struct ClockSource {
  std::string name;  // empty: the clock is the rank's alone
  Seconds shown;
};

/// Returns passages between ranks that read one reference clock: in both directions, without delay.
/// clock_offsets derives the offsets of the ranks' own clocks from these.
std::vector<ClockObservation> passages_of(const std::vector<ClockSource>& clocks);

/// Offsets that relate the clocks of all ranks.
struct ClockOffsets {
  /// How far each rank's clock is ahead of that of the first rank of its group. A group is a set of
  /// ranks that passages connect.
  std::vector<Seconds> offset;
  /// By how much some passage still arrives before it was sent, under the best possible offsets.
  /// Above 0, clocks drifted or readings are wrong.
  Seconds residual;
  /// Largest possible error of an offset. Infinite if passages go in one direction only; the
  /// fastest of them is then assumed to take no time.
  Seconds uncertainty;
  /// Ranks that no chain of passages connects with rank 0; their offsets refer to another clock.
  std::vector<int> unjoined;
};

/// Computes the offsets of clocks that do not drift. If the fastest passages of both directions
/// take the same time, the offsets are exact; between two ranks they are off by at most half of the
/// fastest round trip.
ClockOffsets clock_offsets(int ranks, const std::vector<ClockObservation>& passages);

}  // namespace pipewright::plan
