#pragma once

// Groups the ranks of a traced job into its pipelines.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/topology.hpp"
#include "pipewright/trace/explain/traced_rank.hpp"

namespace pipewright::trace {

struct JobPipeline {
  /// Coordinates along the other axes, such as {{"data", 1}, {"tensor", 0}}; empty if it is the
  /// only pipeline.
  std::vector<plan::AxisIndex> place{};
  std::vector<int> numbers{};              // numbers of its ranks within the job, from the first
                                           // stage on
  std::vector<const TracedRank*> ranks{};  // the same ranks' traces
};

/// Formats coordinates as "data 1, tensor 0".
std::string to_string(const std::vector<plan::AxisIndex>& place);

/// Parses axes of a scenario (`pipeline.axes`) with their lengths, such as "pipe=4,data=2"; the
/// last one varies fastest. Throws InputError that names `--axes`.
plan::Topology axes_of(const std::string& text);

/// Returns the pipelines, ordered by the rank of their first stage. Uses the process groups of
/// pipeline ranks if the traces name them (torch's device meshes and Megatron-LM do), otherwise
/// `axes`. Without either, all traces form one pipeline, ordered by rank, or as given if no trace
/// says its rank. Throws InputError that names file and value if ranks are missing or duplicate, if
/// traces come from different runs, or if `axes` contradict the traces.
std::vector<JobPipeline> pipelines_of(const std::vector<TracedRank>& ranks,
                                      const std::optional<plan::Topology>& axes);

}  // namespace pipewright::trace
