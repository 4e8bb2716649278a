#pragma once

// Converts the boundaries of stages to their numbers of layers.

#include <cstddef>
#include <vector>

namespace pipewright::search {

/// Returns the layers of each stage: {0, 5, 11, 16} becomes {5, 6, 5}.
inline std::vector<int> layers_between(const std::vector<int>& boundaries) {
  std::vector<int> layers;
  for (std::size_t stage = 0; stage + 1 < boundaries.size(); ++stage)
    layers.push_back(boundaries[stage + 1] - boundaries[stage]);
  return layers;
}

}  // namespace pipewright::search
