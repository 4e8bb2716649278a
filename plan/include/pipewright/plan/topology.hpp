#pragma once

// Named axes and their lengths give each rank a coordinate: row-major, the last axis fastest, as in
// DeepSpeed's ProcessTopology. For axes pipe, data of 2 and 4, rank 5 is pipe 1, data 1.

#include <string>
#include <vector>

#include "pipewright/plan/json_document.hpp"

namespace pipewright::plan {

class Topology {
 public:
  /// Throws InputError on a doubled or empty axis name, a length below 1, or unequal counts.
  Topology(std::vector<std::string> axes, std::vector<int> lengths);

  int rank_count() const;
  const std::vector<std::string>& axes() const { return axes_; }
  const std::vector<int>& lengths() const { return lengths_; }
  /// Throws InputError for an axis that does not exist.
  int length_of(const std::string& axis) const;

  /// One entry an axis. Throws InputError when the rank is out of range.
  std::vector<int> coordinate_of(int rank) const;
  int coordinate_of(int rank, const std::string& axis) const;
  int rank_of(const std::vector<int>& coordinate) const;

  /// The groups of ranks that differ along `axis` alone: who talks to whom in its collectives.
  std::vector<std::vector<int>> groups_along(const std::string& axis) const;

  friend bool operator==(const Topology&, const Topology&) = default;

 private:
  std::size_t index_of(const std::string& axis) const;

  std::vector<std::string> axes_;
  std::vector<int> lengths_;
};

Json to_json(const Topology& topology);
Topology topology_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
