#pragma once

// The heartbeat that a rank posts, and the sentence that reports a failure from all ranks'
// heartbeats.

#include <chrono>
#include <string>
#include <vector>

namespace pipewright::exec {

/// A wait of one rank for others: "in 1RECV_B3" for rank 2.
struct Wait {
  std::vector<int> ranks;
  std::string where;
  friend bool operator==(const Wait&, const Wait&) = default;
};

/// A heartbeat, which a rank posts a few times per second.
struct Heartbeat {
  long count = 0;
  std::string at;          // its action, such as 2B3, or its phase, such as "its start"
  bool in_action = false;  // false in a phase
  long moves = 0;          // number of instructions begun and waits ended
  std::vector<Wait> waits;
  std::string note{};  // any text for the other ranks
  bool left = false;   // the last heartbeat: the rank has ended normally
};

std::string to_text(const Heartbeat& beat);
Heartbeat beat_from_text(const std::string& text);

/// Returns "rank 2 <what>; it was at 2B3; rank 1 waits in 1RECV_B3 for it", from all ranks' latest
/// heartbeats.
std::string failure_report(int rank, const std::string& what, const std::vector<Heartbeat>& beats);
/// Returns the last part of that sentence, "; rank 1 waits in 1RECV_B3 for it"; empty if no rank
/// waits for this one.
std::string who_waits_for(int rank, const std::vector<Heartbeat>& beats);

/// "rank 2", "ranks 0, 1"
std::string ranks_text(const std::vector<int>& ranks);

/// "0.5 s"
std::string in_seconds(std::chrono::milliseconds time);

}  // namespace pipewright::exec
