#pragma once

// The places of a job's ranks on a machine. A place is a number that selects the device of its rank
// (JobEnvironment::local_rank). When a rank fails permanently its place is given up, and a spare
// place replaces it.

#include <vector>

namespace pipewright::exec {

class RankPlaces {
 public:
  /// Assigns the first places to the ranks; the others are spare. `copies`: the number of ranks is
  /// always a multiple of it, such as replicas times tensor-parallel ranks.
  RankPlaces(int ranks, int spares, int copies = 1);

  /// Returns the place of each rank.
  const std::vector<int>& of_ranks() const { return of_ranks_; }
  /// Returns the spare places in the order in which they will be used.
  const std::vector<int>& spare() const { return spare_; }
  const std::vector<int>& given_up() const { return given_up_; }

  /// Stops using this rank's place. A spare place takes over the rank. If there is none, the number
  /// of ranks shrinks, and places beyond a multiple of `copies` become spare. Returns false and
  /// changes nothing if no rank would remain.
  bool give_up(int rank);
  /// Uses all places again, as at the beginning.
  void take_back();

 private:
  int ranks_;
  int spares_;
  int copies_;
  std::vector<int> of_ranks_, spare_, given_up_;
};

}  // namespace pipewright::exec
