#pragma once

// Named axes and their lengths, which give each rank a coordinate: row-major, the last axis
// fastest, as in DeepSpeed's ProcessTopology. With axes pipe and data of lengths 2 and 4, rank 5 is
// pipe 1, data 1.

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
  /// Throws InputError on a duplicate or empty axis name, a length below 1, or unequal counts.
  Topology(std::vector<std::string> axes, std::vector<int> lengths);

  int rank_count() const;
  const std::vector<std::string>& axes() const { return axes_; }
  const std::vector<int>& lengths() const { return lengths_; }
  /// Throws InputError for an axis that does not exist.
  int length_of(const std::string& axis) const;
  /// Returns the length of an axis, or 0 if there is no such axis, as DeepSpeed's get_dim.
  int find_length(const std::string& axis) const;

  /// Returns one index per axis. Throws InputError if the rank is out of range.
  std::vector<int> coordinate_of(int rank) const;
  int coordinate_of(int rank, const std::string& axis) const;
  int rank_of(const std::vector<int>& coordinate) const;
  /// Returns the rank at the indices that are given by name, in any order, such as {{"data", 1},
  /// {"pipe", 0}}. Throws InputError unless each axis is there once.
  int rank_at(const std::vector<AxisIndex>& coordinate) const;

  /// Returns the ranks that meet every condition: all ranks if there is no condition, and none if
  /// an index lies outside its axis. Throws InputError for an axis that does not exist.
  std::vector<int> ranks_where(const std::vector<AxisIndex>& conditions) const;
  std::vector<int> ranks_at(const std::string& axis, int index) const;

  /// Returns the groups of ranks that differ only along `axis`: the members of its collectives.
  RankGroups groups_along(const std::string& axis) const;

  /// Returns a rank's name in the form of DeepSpeed's checkpoint files: "row_00-col_01". The names
  /// identify tensor-parallel parts, therefore data and pipe are omitted by default; an omitted
  /// axis need not exist.
  std::string repr_of(int rank, const std::vector<std::string>& omitted = {"data", "pipe"},
                      std::string_view inner = "_", std::string_view outer = "-") const;

  friend bool operator==(const Topology&, const Topology&) = default;

 private:
  std::size_t index_of(const std::string& axis) const;

  std::vector<std::string> axes_;
  std::vector<int> lengths_;
};

/// Make the usual topologies. Data is a faster axis than pipe, so that ranks that all-reduce
/// gradients are neighbors.
Topology pipe_data_topology(int pipe, int data);
Topology pipe_data_model_topology(int pipe, int data, int model);

/// Throws InputError unless the product of the lengths is `ranks`.
void require_ranks(const Topology& topology, int ranks);

Json to_json(const Topology& topology);
Topology topology_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
