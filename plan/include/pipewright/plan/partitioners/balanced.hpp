#pragma once

// Partitions of a sequence of weighted items into parts that are as equal as possible.

#include <vector>

namespace pipewright::plan {

/// Returns the boundaries whose heaviest part is as light as possible (exact). Ties go to the
/// smallest sum of squares, then to the latest boundaries, as in DeepSpeed. Every part gets an
/// item; with fewer items than parts, each item is a part and the last parts are empty. Takes about
/// O(items) time. Throws InputError if `parts` is less than 1 or a weight is negative.
std::vector<int> balanced_boundaries(const std::vector<double>& weights, int parts);

/// Returns parts whose lengths differ by at most one, the longer ones first. With fewer items than
/// parts, the last parts are empty. Throws InputError if `parts` is less than 1.
std::vector<int> uniform_boundaries(int items, int parts);

}  // namespace pipewright::plan
