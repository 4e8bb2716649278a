#pragma once

// What ranks tell each other of themselves, and the sentence that is made of it when one fails.

#include <chrono>
#include <string>
#include <vector>

namespace pipewright::exec {

/// A rank waits for others: "in 1RECV_B3" for rank 2.
struct Wait {
  std::vector<int> ranks;
  std::string where;
  friend bool operator==(const Wait&, const Wait&) = default;
};

/// What a rank posts a few times per second.
struct Beat {
  long count = 0;
  std::string at;          // its action, such as 2B3, or a phase, such as "its start"
  bool in_action = false;  // and not in a phase
  long moves = 0;          // how often it has begun something or ended a wait
  std::vector<Wait> waits;
  std::string note{};  // whatever it tells the others
  bool left = false;   // its last: the rank has ended in peace
};

std::string to_text(const Beat& beat);
Beat beat_from_text(const std::string& text);

/// "rank 2 <what>; it was at 2B3; rank 1 waits in 1RECV_B3 for it", from all ranks' latest beats.
std::string failure_report(int rank, const std::string& what, const std::vector<Beat>& beats);
/// The end of it, "; rank 1 waits in 1RECV_B3 for it"; empty where nobody does.
std::string who_waits_for(int rank, const std::vector<Beat>& beats);

/// "rank 2", "ranks 0, 1"
std::string ranks_text(const std::vector<int>& ranks);

/// "0.5 s"
std::string in_seconds(std::chrono::milliseconds time);

}  // namespace pipewright::exec
