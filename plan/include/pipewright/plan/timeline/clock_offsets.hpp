#pragma once

// One clock for ranks that measured with clocks of their own: what was received after it was sent
// bounds how far two clocks are apart.

#include <string>
#include <vector>

#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// Something left one rank and reached another, each time by that rank's own clock.
struct Passage {
  int from = 0;
  int to = 0;
  Seconds sent;
  Seconds arrived;
};

/// What a rank's clock is made of: one that others may read as well, such as a machine's, and what
/// that one showed when the rank's was 0.
struct ClockSource {
  std::string name;  // empty: it is the rank's alone
  Seconds shown;
};

/// Between ranks that read one clock: both ways, in no time. Then clock_offsets knows how far their
/// own are apart.
std::vector<Passage> passages_of(const std::vector<ClockSource>& clocks);

struct ClockOffsets {
  /// How far each rank's clock is ahead of that of the first rank of its group: the ranks that
  /// passages join.
  std::vector<Seconds> offset;
  /// By how much some passage still arrives before it was sent; no offsets make that less. Above
  /// 0, clocks drifted or readings are wrong.
  Seconds residual;
  /// No offset is further off than this. Infinite where passages go one way only: the fastest of
  /// them is then taken to take no time.
  Seconds uncertainty;
  /// Ranks that no passage joins with rank 0, however indirectly: theirs is another clock.
  std::vector<int> unjoined;
};

/// The clocks must not drift. Where the fastest passages of both ways take the same time, the
/// offsets are exact; between two ranks they are off by at most half of the fastest round trip.
ClockOffsets clock_offsets(int ranks, const std::vector<Passage>& passages);

}  // namespace pipewright::plan
