#include "pipewright/models/transformer/stage_layers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright::models {

std::vector<int> balanced_stage_layers(int layers, int stages, double embedding, double head) {
  const auto last = static_cast<std::size_t>(stages) - 1;
  const auto extra = [&](std::size_t stage) {
    return (stage == 0 ? embedding : 0) + (stage == last ? head : 0);
  };
  // All stages end within one layer of the mean, unless a single layer is already too much.
  const double mean = (layers + embedding + head) / stages;
  std::vector<int> counts(last + 1);
  for (std::size_t stage = 0; stage <= last; ++stage)
    counts[stage] = std::max(1, static_cast<int>(std::floor(mean - extra(stage))) - 1);
  if (std::accumulate(counts.begin(), counts.end(), 0) > layers)
    std::fill(counts.begin(), counts.end(), 1);
  for (int left = layers - std::accumulate(counts.begin(), counts.end(), 0); left > 0; --left) {
    std::size_t shortest = last;
    for (std::size_t stage = last; stage-- > 0;)
      if (counts[stage] + extra(stage) < counts[shortest] + extra(shortest))
        shortest = stage;
    ++counts[shortest];
  }
  return counts;
}

std::vector<int> boundaries_of(const plan::Cut& cut, int layers) {
  std::vector<int> boundaries{0};
  int border = 1;
  for (int stage = 0; stage < cut.stages(); ++stage)
    boundaries.push_back(border += cut.layers_of(stage, layers));
  ++boundaries.back();
  return boundaries;
}

}  // namespace pipewright::models
