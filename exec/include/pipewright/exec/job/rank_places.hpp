#pragma once

// Where on a machine the ranks of a job run. A place is a number that says which device its rank
// has (JobEnvironment::local_rank); one whose rank fails for good is given up, and a spare one
// comes in.

#include <vector>

namespace pipewright::exec {

class RankPlaces {
 public:
  /// The first places have the ranks, the others are spare. `copies`: there is always a multiple of
  /// so many ranks, such as replicas times shards.
  RankPlaces(int ranks, int spares, int copies = 1);

  /// By rank.
  const std::vector<int>& of_ranks() const { return of_ranks_; }
  /// In the order in which they come in.
  const std::vector<int>& spare() const { return spare_; }
  const std::vector<int>& given_up() const { return given_up_; }

  /// This rank's place is used no more. A spare one takes the rank; without one there are fewer
  /// ranks, and places that are too many for a multiple of `copies` are spare from then on. Nothing
  /// changes where that would leave no rank: false.
  bool give_up(int rank);
  /// All are used again, as at the beginning.
  void take_back();

 private:
  int ranks_;
  int spares_;
  int copies_;
  std::vector<int> of_ranks_, spare_, given_up_;
};

}  // namespace pipewright::exec
