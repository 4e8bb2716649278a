#pragma once

// Which nodes of a stage to compute again, so that its memory suffices and the least time is lost.

#include <cstddef>
#include <vector>

namespace pipewright::planners {

/// A node that may be computed again.
struct RecomputeItem {
  int node = 0;
  double seconds = 0;                     // more, at least 0
  double saved_bytes_per_microbatch = 0;  // of those under way
  double more_bytes = 0;                  // held anyway
};

/// Items that save the same form a group, of which the quickest are the best choice; over the
/// groups all numbers are tried. So the choice is exact. One object serves many stages, as nothing
/// is allocated for another.
class RecomputeChoice {
 public:
  /// All items that there are.
  explicit RecomputeChoice(std::vector<RecomputeItem> items = {});

  /// The quickest of the items with `may(node)` that save so many bytes with so many microbatches
  /// under way. False where all do not suffice.
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

  /// Of the last choice.
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
  std::vector<std::size_t> order_;  // of the groups, the largest last
  std::vector<std::size_t> counts_, best_counts_;
  double best_ = 0;
};

}  // namespace pipewright::planners
