#pragma once

// A prediction laid beside what happened, action by action.

#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// One action of both sides.
struct ActionPair {
  int rank = 0;
  std::string action;
  plan::Seconds predicted_start, predicted;  // when it began, and how long it took
  plan::Seconds measured_start, measured;
  plan::Seconds error() const { return predicted - measured; }
};

struct ActionComparison {
  std::vector<ActionPair> pairs;  // by rank, and by their predicted start
  // "rank 1, 2F0": what only one side has.
  std::vector<std::string> only_predicted, only_measured;
};

/// Pairs actions of one rank and name; those of one name in the order of time. Sends are left out:
/// predicted, a send takes as long as its data move; measured, as long as they are handed over.
ActionComparison compare_actions(const plan::Timeline& predicted, const plan::Timeline& measured);

/// rank, action, predicted_start_s, predicted_s, measured_start_s, measured_s, error_s.
std::string actions_csv(const ActionComparison& comparison);

/// For people: the pairs whose times differ most, at most `most` of them, and what only one side
/// has.
std::string actions_table(const ActionComparison& comparison, std::size_t most);

}  // namespace pipewright::loop
