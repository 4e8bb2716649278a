#include "pipewright/engine/split_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

std::string to_string(const SplitPoint& point) {
  return fmt::format("the {} of \"{}\"",
                     point.side == SplitPoint::Side::Beginning ? "beginning" : "end", point.layer);
}

int border_of(const SplitPoint& point, const std::vector<std::string>& layers) {
  const auto is_meant = [&](const std::string& layer) {
    return layer == point.layer || layer.starts_with(point.layer + ".");
  };
  const auto found = std::find_if(layers.begin(), layers.end(), is_meant);
  if (found == layers.end())
    throw plan::InputError(fmt::format("there is no layer \"{}\" to split at{} (possible: {})",
                                       point.layer, plan::did_you_mean(point.layer, layers),
                                       plan::listed(layers)));
  const auto end = std::find_if_not(found, layers.end(), is_meant);
  return static_cast<int>((point.side == SplitPoint::Side::Beginning ? found : end) -
                          layers.begin());
}

}  // namespace

std::vector<int> boundaries_at(const std::vector<SplitPoint>& points,
                               const std::vector<std::string>& layers) {
  const int count = static_cast<int>(layers.size());
  std::map<int, const SplitPoint*> borders;
  for (const SplitPoint& point : points) {
    const int border = border_of(point, layers);
    if (border == 0 || border == count)
      throw plan::InputError(fmt::format("a split at {} leaves the {} stage empty",
                                         to_string(point), border == 0 ? "first" : "last"));
    const auto [before, is_new] = borders.try_emplace(border, &point);
    if (!is_new)
      throw plan::InputError(fmt::format("{} and {} are the same boundary: split there once",
                                         to_string(*before->second), to_string(point)));
  }
  std::vector<int> boundaries{0};
  for (const auto& [border, point] : borders)
    boundaries.push_back(border);
  boundaries.push_back(count);
  return boundaries;
}

}  // namespace pipewright::engine
