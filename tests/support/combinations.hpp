// Chooses combinations of a grid. Tests try every pair of values, `./dev soak` every combination.
#pragma once

#include <cstdlib>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace pipewright::test {

/// Returns true if the run tries every combination of its grids: if PIPEWRIGHT_SOAK is set, as in
/// the ctest entries NAME/soak.
inline bool covers_all() { return std::getenv("PIPEWRIGHT_SOAK") != nullptr; }

/// Remembers which pairs of values were tried together. A grid that asks it before each of its
/// combinations tries every pair that occurs in a valid combination, but not every three values
/// together.
class PairCover {
 public:
  /// Returns true if two of the values were not yet tried together. Each position holds the values
  /// of one dimension.
  bool needs(const std::vector<std::string>& values) const {
    bool found = covers_all();
    for_each_pair(values, [&](const Pair& pair) { found = found || tried_.count(pair) == 0; });
    return found;
  }

  /// Marks all pairs of a combination as tried. Do not call it for a combination that turned out to
  /// be invalid.
  void add(const std::vector<std::string>& values) {
    for_each_pair(values, [&](const Pair& pair) { tried_.insert(pair); });
  }

 private:
  using Pair = std::tuple<std::size_t, std::size_t, std::string, std::string>;

  template <class Visit>
  static void for_each_pair(const std::vector<std::string>& values, const Visit& visit) {
    for (std::size_t left = 0; left < values.size(); ++left)
      for (std::size_t right = left + 1; right < values.size(); ++right)
        visit(Pair(left, right, values[left], values[right]));
  }

  std::set<Pair> tried_;
};

}  // namespace pipewright::test
