#pragma once

// A partition said by layers' names.

#include <string>
#include <vector>

namespace pipewright::engine {

/// A border between two stages, by the name of a layer, or of what has layers in it: "encoder" for
/// "encoder.0" to "encoder.5".
struct SplitPoint {
  enum class Side { Beginning, End };
  std::string layer;
  Side side = Side::Beginning;
};

/// The boundaries of the stages of a model with these layers, in any order of the points. Throws
/// InputError for a layer that does not exist, two points at one border, or a point that leaves the
/// first or the last stage empty.
std::vector<int> boundaries_at(const std::vector<SplitPoint>& points,
                               const std::vector<std::string>& layers);

}  // namespace pipewright::engine
