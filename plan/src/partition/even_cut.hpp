#pragma once

// The second objective of a balanced partition: the most even cut among those under a given
// bottleneck.

#include <vector>

namespace pipewright::plan {

/// Returns the borders of `parts` parts, each with at least one item and none heavier than `cap`,
/// with the least sum of squares. Among equal cuts it returns the latest borders, comparing the
/// last border first. `sum_before` holds the total weight before each item, and the total of all. A
/// cut under the cap must exist. Whole weights are compared exactly while 128 bits hold the
/// squares, others to about 1e-12.
///
/// The squares of intervals obey the quadrangle inequality. So a Lagrangian penalty per part can
/// enforce the number of parts, and the cheapest cut for a penalty takes O(items). About twenty
/// penalties suffice.
std::vector<int> most_even_cut(const std::vector<double>& sum_before, int parts, double cap);

/// Returns true if all sums are integers that a double holds exactly.
bool are_whole(const std::vector<double>& sums);

}  // namespace pipewright::plan
