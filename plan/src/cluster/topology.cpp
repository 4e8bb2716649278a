#include "pipewright/plan/cluster/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::plan {

Topology::Topology(std::vector<std::string> axes, std::vector<int> lengths)
    : axes_(std::move(axes)), lengths_(std::move(lengths)) {
  if (axes_.size() != lengths_.size())
    throw InputError(
        fmt::format("{} axes are named, but {} lengths are given", axes_.size(), lengths_.size()));
  std::set<std::string> seen;
  std::int64_t ranks = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].empty())
      throw InputError(fmt::format("axis {} has no name", i));
    if (!seen.insert(axes_[i]).second)
      throw InputError(fmt::format("the axis \"{}\" occurs twice", axes_[i]));
    if (lengths_[i] < 1)
      throw InputError(
          fmt::format("the axis \"{}\" has the length {}, the least is 1", axes_[i], lengths_[i]));
    ranks *= lengths_[i];
    if (ranks > std::numeric_limits<int>::max())
      throw InputError("the axes together have more ranks than can be counted");
  }
}

int Topology::rank_count() const {
  int count = 1;
  for (const int length : lengths_)
    count *= length;
  return count;
}

std::size_t Topology::index_of(const std::string& axis) const {
  const auto found = std::find(axes_.begin(), axes_.end(), axis);
  if (found == axes_.end())
    throw InputError(fmt::format("no axis is called \"{}\"{} (known: {})", axis,
                                 did_you_mean(axis, axes_), listed(axes_)));
  return static_cast<std::size_t>(found - axes_.begin());
}

int Topology::length_of(const std::string& axis) const { return lengths_[index_of(axis)]; }

int Topology::find_length(const std::string& axis) const {
  const auto found = std::find(axes_.begin(), axes_.end(), axis);
  return found == axes_.end() ? 0 : lengths_[static_cast<std::size_t>(found - axes_.begin())];
}

std::vector<int> Topology::coordinate_of(int rank) const {
  if (rank < 0 || rank >= rank_count())
    throw InputError(fmt::format("there is no rank {}: the {} ranks are 0 to {}", rank,
                                 rank_count(), rank_count() - 1));
  std::vector<int> coordinate(axes_.size());
  for (std::size_t i = axes_.size(); i-- > 0; rank /= lengths_[i])
    coordinate[i] = rank % lengths_[i];
  return coordinate;
}

int Topology::coordinate_of(int rank, const std::string& axis) const {
  return coordinate_of(rank)[index_of(axis)];
}

int Topology::rank_of(const std::vector<int>& coordinate) const {
  if (coordinate.size() != axes_.size())
    throw InputError(fmt::format("a coordinate of {} numbers is given, but there are {} axes",
                                 coordinate.size(), axes_.size()));
  int rank = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (coordinate[i] < 0 || coordinate[i] >= lengths_[i])
      throw InputError(fmt::format("{} {} does not exist: the axis has 0 to {}", axes_[i],
                                   coordinate[i], lengths_[i] - 1));
    rank = rank * lengths_[i] + coordinate[i];
  }
  return rank;
}

int Topology::rank_at(const std::vector<AxisIndex>& coordinate) const {
  std::vector<std::optional<int>> indices(axes_.size());
  for (const AxisIndex& given : coordinate)
    if (std::exchange(indices[index_of(given.axis)], given.index))
      throw InputError(fmt::format("the axis \"{}\" occurs twice in a coordinate", given.axis));
  std::vector<int> all;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (!indices[i])
      throw InputError(fmt::format("the coordinate has no index of the axis \"{}\" (needed: {})",
                                   axes_[i], listed(axes_)));
    all.push_back(*indices[i]);
  }
  return rank_of(all);
}

std::vector<int> Topology::ranks_where(const std::vector<AxisIndex>& conditions) const {
  std::vector<std::size_t> axes;
  axes.reserve(conditions.size());
  for (const AxisIndex& condition : conditions)
    axes.push_back(index_of(condition.axis));
  std::vector<int> ranks;
  for (int rank = 0; rank < rank_count(); ++rank) {
    const std::vector<int> coordinate = coordinate_of(rank);
    bool all_hold = true;
    for (std::size_t i = 0; i < axes.size(); ++i)
      all_hold = all_hold && coordinate[axes[i]] == conditions[i].index;
    if (all_hold)
      ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> Topology::ranks_at(const std::string& axis, int index) const {
  return ranks_where({{axis, index}});
}

RankGroups Topology::groups_along(const std::string& axis) const {
  const std::size_t along = index_of(axis);
  RankGroups groups;
  for (int first = 0; first < rank_count(); ++first) {
    std::vector<int> coordinate = coordinate_of(first);
    if (coordinate[along] != 0)
      continue;
    std::vector<int> group;
    for (; coordinate[along] < lengths_[along]; ++coordinate[along])
      group.push_back(rank_of(coordinate));
    groups.push_back(std::move(group));
  }
  return groups;
}

std::string Topology::repr_of(int rank, const std::vector<std::string>& omitted,
                              std::string_view inner, std::string_view outer) const {
  const std::vector<int> coordinate = coordinate_of(rank);
  std::string repr;
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (std::find(omitted.begin(), omitted.end(), axes_[i]) == omitted.end())
      repr += fmt::format("{}{}{}{:02}", repr.empty() ? "" : outer, axes_[i], inner, coordinate[i]);
  return repr;
}

Topology pipe_data_topology(int pipe, int data) { return {{"pipe", "data"}, {pipe, data}}; }

Topology pipe_data_model_topology(int pipe, int data, int model) {
  return {{"pipe", "data", "model"}, {pipe, data, model}};
}

void require_ranks(const Topology& topology, int ranks) {
  if (topology.rank_count() == ranks)
    return;
  std::string product;
  for (std::size_t i = 0; i < topology.axes().size(); ++i)
    product +=
        fmt::format("{}{} {}", i == 0 ? "" : " x ", topology.axes()[i], topology.lengths()[i]);
  throw InputError(
      fmt::format("{} is {} ranks, but there are {}", product, topology.rank_count(), ranks));
}

Json to_json(const Topology& topology) {
  return {{"format", "pipewright/topology/1"},
          {"axes", topology.axes()},
          {"lengths", topology.lengths()}};
}

namespace {

Topology read_topology(JsonObject& object) {
  std::vector<std::string> axes = object.texts("axes");
  std::vector<int> lengths = object.integers("lengths", at_least(1));
  if (!object.diagnostics().empty())
    return {{}, {}};
  try {
    return {std::move(axes), std::move(lengths)};
  } catch (const InputError& error) {
    object.error("axes", error.what());
    return {{}, {}};
  }
}

}  // namespace

Topology topology_from_json(const JsonDocument& document) {
  return read_document<Topology>(document, "pipewright/topology/1", read_topology);
}

}  // namespace pipewright::plan
