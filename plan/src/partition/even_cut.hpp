#pragma once

// The second aim of a balanced partition: among the cuts under a bottleneck, the most even one.

#include <vector>

namespace pipewright::plan {

/// Borders of `parts` parts with at least one item each, none heavier than `cap`, of least sum of
/// squares; among equals the latest borders, the last border first. `sum_before` holds the weights
/// before each item and the sum of all; such a cut must exist. Whole weights are compared exactly
/// while 128 bits hold the squares, others to about 1e-12.
///
/// Squares of intervals obey the quadrangle inequality, so a price on each part finds the number of
/// parts (Lagrange), and the cheapest cut at a price takes O(items): about twenty prices do.
std::vector<int> most_even_cut(const std::vector<double>& sum_before, int parts, double cap);

/// Whether all sums are whole numbers that a double holds exactly.
bool are_whole(const std::vector<double>& sums);

}  // namespace pipewright::plan
