#pragma once

// A measured model as a graph of operators, as PipeDream's and DAPPLE's profilers write it. Read
// from CSV: rows `node,ID,DESC,FORWARD_MS,BACKWARD_MS,ACTIVATION_BYTES,PARAMETER_BYTES,,` and
// `edge,,,,,,,FROM,TO` under a header that names these columns; `node,FROM,TO` without figures is
// also an edge.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/plan/quantity.hpp"

namespace pipewright::search {

struct ProfileNode {
  std::string id;
  std::string description;
  plan::Seconds compute;  // forward and backward
  double activation = 0;  // bytes of the output
  double parameters = 0;  // bytes
  friend bool operator==(const ProfileNode&, const ProfileNode&) = default;
};

struct ProfileEdge {
  int from = 0;  // indices of nodes
  int to = 0;
  friend bool operator==(const ProfileEdge&, const ProfileEdge&) = default;
};

struct ProfileGraph {
  std::vector<ProfileNode> nodes;
  std::vector<ProfileEdge> edges;
  friend bool operator==(const ProfileGraph&, const ProfileGraph&) = default;
};

/// Reads a graph. `name` stands for the file in messages, which name row and column. Throws
/// InputError.
ProfileGraph profile_graph_from_csv(const std::string& text, const std::string& name);
ProfileGraph read_profile_graph(const std::filesystem::path& file);

/// Returns the graph without nodes that take no part in a partition: inputs (sources called Input…)
/// and unused results (sinks called __getitem__…).
ProfileGraph without_ends(const ProfileGraph& graph);

}  // namespace pipewright::search
