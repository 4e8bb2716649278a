#include "pipewright/plan/generators/round_robin.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {
namespace {

void check_copies(const std::vector<int>& copies, int microbatches) {
  const auto stages = static_cast<int>(copies.size());
  const bool each_has_one =
      stages > 0 && std::all_of(copies.begin(), copies.end(), [](int count) { return count >= 1; });
  if (!each_has_one)
    throw InputError(fmt::format("1f1b: copies [{}]: every stage needs one at least, such as 2,1,1",
                                 fmt::join(copies, ", ")));
  const int most = *std::max_element(copies.begin(), copies.end());
  if (microbatches < most)
    throw InputError(
        fmt::format("1f1b: {} microbatches asked for, but a stage with {} copies needs as many: {}",
                    microbatches, most, most));
  check_sizes("1f1b", stages, microbatches, most);
}

/// Returns the actions of one rank: 1F1B over the microbatches of one replica of a stage.
std::vector<Action> of_copy(int stage, int copy, int copies, int ahead, int microbatches) {
  std::vector<int> own;
  for (int m = copy; m < microbatches; m += copies)
    own.push_back(m);
  const std::size_t warm_up = std::min(own.size(), static_cast<std::size_t>(ahead));
  std::vector<Action> actions;
  for (std::size_t at = 0; at < own.size() + warm_up; ++at) {
    if (at < own.size())
      actions.push_back({ActionKind::Forward, stage, own[at]});
    if (at >= warm_up)
      actions.push_back({ActionKind::Backward, stage, own[at - warm_up]});
  }
  return actions;
}

}  // namespace

Schedule make_1f1b_rr(const std::vector<int>& copies, int microbatches) {
  check_copies(copies, microbatches);
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  int ranks = std::accumulate(copies.begin(), copies.end(), 0);  // of this stage and those after it
  for (std::size_t stage = 0; stage < copies.size(); ++stage) {
    for (int copy = 0; copy < copies[stage]; ++copy)
      schedule.ranks.push_back(of_copy(static_cast<int>(stage), copy, copies[stage],
                                       (ranks - 1) / copies[stage], microbatches));
    ranks -= copies[stage];
  }
  return schedule;
}

}  // namespace pipewright::plan
