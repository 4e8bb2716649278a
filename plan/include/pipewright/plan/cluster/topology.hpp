#pragma once

// Named axes and their lengths give each rank a coordinate: row-major, the last axis fastest, as in
// DeepSpeed's ProcessTopology. For axes pipe, data of 2 and 4, rank 5 is pipe 1, data 1.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

using RankGroups = std::vector<std::vector<int>>;

/// A condition on a coordinate: {"pipe", 0} holds for the ranks of the first stage.
struct AxisIndex {
  std::string axis;
  int index;
};

class Topology {
 public:
  /// Throws InputError on a doubled or empty axis name, a length below 1, or unequal counts.
  Topology(std::vector<std::string> axes, std::vector<int> lengths);

  int rank_count() const;
  const std::vector<std::string>& axes() const { return axes_; }
  const std::vector<int>& lengths() const { return lengths_; }
  /// Throws InputError for an axis that does not exist.
  int length_of(const std::string& axis) const;
  /// The same, but 0 for an axis that does not exist, as DeepSpeed's get_dim.
  int find_length(const std::string& axis) const;

  /// One entry an axis. Throws InputError when the rank is out of range.
  std::vector<int> coordinate_of(int rank) const;
  int coordinate_of(int rank, const std::string& axis) const;
  int rank_of(const std::vector<int>& coordinate) const;
  /// The same by names, in any order, such as {{"data", 1}, {"pipe", 0}}. Throws InputError unless
  /// each axis is there once.
  int rank_at(const std::vector<AxisIndex>& coordinate) const;

  /// The ranks that meet every condition: all of them when there is none, and none when an index
  /// lies outside its axis. Throws InputError for an axis that does not exist.
  std::vector<int> ranks_where(const std::vector<AxisIndex>& conditions) const;
  std::vector<int> ranks_at(const std::string& axis, int index) const;

  /// The groups of ranks that differ along `axis` alone: who talks to whom in its collectives.
  RankGroups groups_along(const std::string& axis) const;

  /// A rank's name in the form of DeepSpeed's checkpoint files: "row_00-col_01". They name model
  /// slices, therefore data and pipe are omitted by default; an omitted axis need not exist.
  std::string repr_of(int rank, const std::vector<std::string>& omitted = {"data", "pipe"},
                      std::string_view inner = "_", std::string_view outer = "-") const;

  friend bool operator==(const Topology&, const Topology&) = default;

 private:
  std::size_t index_of(const std::string& axis) const;

  std::vector<std::string> axes_;
  std::vector<int> lengths_;
};

/// Data is the faster axis: the ranks that add up gradients are neighbours.
Topology pipe_data_topology(int pipe, int data);
Topology pipe_data_model_topology(int pipe, int data, int model);

/// Throws InputError unless the product of the lengths is `ranks`.
void require_ranks(const Topology& topology, int ranks);

Json to_json(const Topology& topology);
Topology topology_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
