#pragma once

// Describes the cycle of a deadlock. Every list of work that is stuck (a rank's compute, or one of
// its queues) is stopped at an action, which waits for another action further back in some list.

#include <string>
#include <vector>

namespace pipewright::plan {

struct Waiting {
  int place = 0;       // number of the stuck list
  int rank = 0;        // rank of the list
  std::string action;  // action at which it is stuck
  std::string needs;   // action it waits for
  int behind = 0;      // list that has that action further back
};

/// Returns the shortest cycle of entries that wait for each other. `stuck` may hold several entries
/// per list, and must contain a cycle.
std::vector<Waiting> shortest_cycle(const std::vector<Waiting>& stuck);

/// Returns "deadlock: rank 0 at 0B0 waits for 1B0, which rank 1 runs after 1F1; rank 1 at 1F1 waits
/// for 0F1, which rank 0 runs after 0B0".
std::string in_words(const std::vector<Waiting>& cycle);

}  // namespace pipewright::plan
