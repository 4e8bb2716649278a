#pragma once

// How a row of weighted items is cut into parts that are as equal as possible.

#include <vector>

namespace pipewright::plan {

/// The boundaries whose heaviest part is as light as possible, exactly; among those the most even
/// (least sum of squares), and among those the latest boundaries, as DeepSpeed breaks its ties.
/// Every part gets an item; with fewer items than parts each item is a part, and the last parts are
/// empty. About O(items) time. Throws InputError when there is no part, or a negative weight.
std::vector<int> balanced_boundaries(const std::vector<double>& weights, int parts);

/// Parts whose lengths differ by at most one, the longer ones first; the last ones are empty when
/// there are fewer items than parts. Throws InputError when there is no part.
std::vector<int> uniform_boundaries(int items, int parts);

}  // namespace pipewright::plan
