#pragma once

// Who waits for whom in a deadlock. Every list of work that stopped (a rank's compute, or one
// of its queues) stands at an action, and waits for another that some list has further back.

#include <string>
#include <vector>

namespace pipewright::plan {

struct Waiting {
  int place = 0;       // the number of the list that stopped
  int rank = 0;        // on which it lies
  std::string action;  // at which it stands
  std::string needs;   // what the action waits for
  int behind = 0;      // the place that has that further back
};

/// The shortest chain in which each waits for the next and the last for the first. `stuck` may hold
/// several entries a place; together they hold a cycle.
std::vector<Waiting> shortest_cycle(const std::vector<Waiting>& stuck);

/// "deadlock: rank 0 at 0B0 waits for 1B0, which rank 1 has behind 1F1; rank 1 at 1F1 waits for
/// 0F1, which rank 0 has behind 0B0".
std::string in_words(const std::vector<Waiting>& cycle);

}  // namespace pipewright::plan
