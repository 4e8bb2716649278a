#pragma once

// Compares a predicted and a measured timeline action by action.

#include <string>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// An action with its predicted and its measured times.
struct ActionPair {
  int rank = 0;
  std::string action;
  plan::Seconds predicted_start, predicted;  // start and duration
  plan::Seconds measured_start, measured;
  plan::Seconds error() const { return predicted - measured; }
};

struct ActionComparison {
  std::vector<ActionPair> pairs;  // by rank, then by predicted start
  // Actions that only one timeline has, as "rank 1, 2F0".
  std::vector<std::string> only_predicted, only_measured;
};

/// Pairs the actions that have the same rank and name; repeated actions are paired in order of
/// time. Sends are left out, because a predicted send lasts until its data have arrived, whereas a
/// measured send lasts only until the transport has accepted the data.
ActionComparison compare_actions(const plan::Timeline& predicted, const plan::Timeline& measured);

/// Returns CSV with the columns rank, action, predicted_start_s, predicted_s, measured_start_s,
/// measured_s, error_s.
std::string actions_csv(const ActionComparison& comparison);

/// Returns a table for people: the `most` pairs with the largest errors, then the actions that only
/// one timeline has.
std::string actions_table(const ActionComparison& comparison, std::size_t most);

}  // namespace pipewright::loop
