#pragma once

// Stage boundaries given by the names of layers.

#include <string>
#include <vector>

namespace pipewright::engine {

/// A boundary between two stages, given by the name of a layer or of a module that contains layers:
/// "encoder" covers "encoder.0" to "encoder.5".
struct SplitPoint {
  enum class Side { Beginning, End };
  std::string layer;
  Side side = Side::Beginning;
};

/// Returns the stage boundaries for a model with these layers. Points may be in any order. Throws
/// InputError for a layer that does not exist, for two points at one boundary, or for a point that
/// leaves the first or the last stage empty.
std::vector<int> boundaries_at(const std::vector<SplitPoint>& points,
                               const std::vector<std::string>& layers);

}  // namespace pipewright::engine
