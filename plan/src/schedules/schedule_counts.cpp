#include "pipewright/plan/schedules/schedule_counts.hpp"

#include <algorithm>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {
namespace {

/// Returns the peak of each rank's running sum of `change(action)`. Inference keeps nothing but the
/// current forward.
template <class Change>
std::vector<int> highest(const Schedule& schedule, const Change& change) {
  std::vector<int> peaks;
  if (is_forward_only(schedule)) {
    for (const auto& actions : schedule.ranks)
      peaks.push_back(actions.empty() ? 0 : change(ActionKind::Forward));
    return peaks;
  }
  for (const auto& actions : schedule.ranks) {
    int held = 0, most = 0;
    for (const Action& action : actions) {
      held += change(action.kind);
      most = std::max(most, held);
    }
    peaks.push_back(most);
  }
  return peaks;
}

}  // namespace

std::vector<int> peak_activations(const Schedule& schedule) {
  return highest(schedule, [](ActionKind kind) {
    return (kind == ActionKind::Forward ? 1 : 0) - (makes_weight_gradient(kind) ? 1 : 0);
  });
}

std::vector<int> peak_memory_units(const Schedule& schedule) {
  return highest(schedule, [](ActionKind kind) {
    return (kind == ActionKind::Forward ? 2 : 0) - (makes_input_gradient(kind) ? 1 : 0) -
           (makes_weight_gradient(kind) ? 1 : 0);
  });
}

}  // namespace pipewright::plan
