#pragma once

// Which ranks of a traced job make which of its pipelines.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/topology.hpp"
#include "pipewright/trace/explain/traced_rank.hpp"

namespace pipewright::trace {

struct JobPipeline {
  /// Where it lies along the other axes, such as {{"data", 1}, {"tensor", 0}}; empty where it is
  /// the only one.
  std::vector<plan::AxisIndex> place{};
  std::vector<int> numbers{};              // of its ranks within the job, from the first stage's on
  std::vector<const TracedRank*> ranks{};  // likewise
};

/// "data 1, tensor 0".
std::string to_string(const std::vector<plan::AxisIndex>& place);

/// "pipe=4,data=2": axes of a scenario (`pipeline.axes`) with their lengths, the last one fastest.
/// Throws InputError that names `--axes`.
plan::Topology axes_of(const std::string& text);

/// The pipelines, by the ranks of their first stages. Where the traces name their groups of
/// pipeline ranks (torch's device meshes and Megatron-LM do), by those, else along `axes`; without
/// either they are one pipeline, by rank or as they were given where none says which it is. Throws
/// InputError that names file and value for ranks that are missing or doubled, for traces of
/// different runs, and where `axes` are not those of the traces.
std::vector<JobPipeline> pipelines_of(const std::vector<TracedRank>& ranks,
                                      const std::optional<plan::Topology>& axes);

}  // namespace pipewright::trace
