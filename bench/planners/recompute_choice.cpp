#include "planners/recompute_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace pipewright::planners {

RecomputeChoice::RecomputeChoice(std::vector<RecomputeItem> items) : items_(std::move(items)) {
  std::stable_sort(items_.begin(), items_.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  for (const RecomputeItem& item : items_) {
    const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
      return group.saved_bytes_per_microbatch == item.saved_bytes_per_microbatch &&
             group.more_bytes == item.more_bytes;
    });
    group_of_.push_back(static_cast<std::size_t>(found - groups_.begin()));
    if (found == groups_.end())
      groups_.push_back({.saved_bytes_per_microbatch = item.saved_bytes_per_microbatch,
                         .more_bytes = item.more_bytes});
  }
  order_.resize(groups_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  counts_.resize(groups_.size());
}

void RecomputeChoice::offer(const RecomputeItem& item, Group& group) {
  group.nodes.push_back(item.node);
  group.seconds.push_back(group.seconds.back() + item.seconds);
}

bool RecomputeChoice::search(double needed_bytes, int microbatches) {
  best_ = std::numeric_limits<double>::infinity();
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(groups_[a].nodes.size(), a) < std::pair(groups_[b].nodes.size(), b);
  });
  try_counts(0, needed_bytes, 0, microbatches);
  return best_ < std::numeric_limits<double>::infinity();
}

/// Tries counts for the groups from `at` on. Of the last group it takes as many as are still
/// needed.
void RecomputeChoice::try_counts(std::size_t at, double needed_bytes, double seconds,
                                 int microbatches) {
  if (seconds >= best_)
    return;
  if (needed_bytes <= 0) {
    std::fill(counts_.begin() + static_cast<std::ptrdiff_t>(at), counts_.end(), 0);
    best_ = seconds;
    best_counts_ = counts_;
    return;
  }
  if (at == order_.size())
    return;
  const Group& group = groups_[order_[at]];
  const double saved = group.saved(microbatches);
  std::size_t count = 0;
  if (at + 1 == order_.size()) {
    const double all = static_cast<double>(group.seconds.size());
    count =
        static_cast<std::size_t>(saved > 0 ? std::min(std::ceil(needed_bytes / saved), all) : all);
  }
  for (; count < group.seconds.size(); ++count) {
    counts_[at] = count;
    try_counts(at + 1, needed_bytes - saved * static_cast<double>(count),
               seconds + group.seconds[count], microbatches);
    if (saved <= 0)
      break;
  }
}

std::vector<int> RecomputeChoice::nodes() const {
  std::vector<int> nodes;
  for (std::size_t at = 0; at < best_counts_.size(); ++at) {
    const auto& of_group = groups_[order_[at]].nodes;
    nodes.insert(nodes.end(), of_group.begin(),
                 of_group.begin() + static_cast<std::ptrdiff_t>(best_counts_[at]));
  }
  return nodes;
}

}  // namespace pipewright::planners
