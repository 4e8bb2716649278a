#pragma once

// Chooses which nodes of a stage to recompute so that the stage fits into memory and loses the
// least time.

#include <cstddef>
#include <vector>

namespace pipewright::planners {

/// A node that may be recomputed.
struct RecomputeItem {
  int node = 0;
  double seconds = 0;                     // additional time, at least 0
  double saved_bytes_per_microbatch = 0;  // saved for each microbatch in flight
  double more_bytes = 0;                  // additional, in any case
};

/// Items with equal savings form a group, from which the fastest are the best choice; all
/// combinations of counts over the groups are tried, so the choice is exact. One object serves many
/// stages, so that no stage allocates memory.
class RecomputeChoice {
 public:
  /// `items`: all items of the problem.
  explicit RecomputeChoice(std::vector<RecomputeItem> items = {});

  /// Finds the fastest choice of items with `may(node)` that saves `needed_bytes` with this number
  /// of microbatches in flight. Returns false if all of them do not suffice.
  template <class May>
  bool choose(double needed_bytes, int microbatches, const May& may) {
    for (Group& group : groups_) {
      group.nodes.clear();
      group.seconds.assign(1, 0);
    }
    for (std::size_t item = 0; item < items_.size(); ++item)
      if (may(items_[item].node))
        offer(items_[item], groups_[group_of_[item]]);
    return search(needed_bytes, microbatches);
  }

  /// Return the result of the last choice.
  double seconds_lost() const { return best_; }
  std::vector<int> nodes() const;

 private:
  struct Group {
    double saved_bytes_per_microbatch = 0;
    double more_bytes = 0;
    std::vector<int> nodes{};
    std::vector<double> seconds{};  // of the first n
    double saved(int microbatches) const {
      return saved_bytes_per_microbatch * microbatches - more_bytes;
    }
  };

  static void offer(const RecomputeItem& item, Group& group);
  bool search(double needed_bytes, int microbatches);
  void try_counts(std::size_t at, double needed_bytes, double seconds, int microbatches);

  std::vector<RecomputeItem> items_;  // by ascending seconds
  std::vector<std::size_t> group_of_;
  std::vector<Group> groups_;
  std::vector<std::size_t> order_;  // of the groups, with the largest last
  std::vector<std::size_t> counts_, best_counts_;
  double best_ = 0;
};

}  // namespace pipewright::planners
