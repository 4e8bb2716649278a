#pragma once

// What the traces of all ranks of a job say: its pipelines side by side, and where the time of the
// slowest goes.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/topology.hpp"
#include "pipewright/plan/stopped.hpp"
#include "pipewright/trace/explain/explanation.hpp"

namespace pipewright::trace {

struct ExplainedPipeline {
  std::vector<plan::AxisIndex> place{};  // in the job; empty where it is the only one
  std::vector<int> ranks{};              // of the job, from the first stage's on
  std::vector<std::string> files{};      // likewise
  double began_s = 0;                    // after the first pipeline had
  double iteration_s = 0;
  /// From a rank's first forward to the end of its last backward, of the rank for which that is
  /// longest: pipelines that wait for each other's gradients have iterations of one length.
  double actions_s = 0;
  std::vector<double> busy_s{};  // by rank
};
/// The one of its ranks that computes longest, by its place among them.
std::size_t busiest_rank(const ExplainedPipeline& pipeline);
double mean_busy_s(const ExplainedPipeline& pipeline);
/// "pipe 1, data 0": where the rank of a stage lies.
std::string place_of_rank(const ExplainedPipeline& pipeline, std::size_t rank);

struct JobExplanation {
  std::vector<ExplainedPipeline> pipelines;
  std::size_t slowest = 0;       // the one whose actions take longest
  TraceExplanation explanation;  // of that
  /// The ranks of all, pipeline by pipeline, on one clock; length: until the last has ended.
  plan::Timeline timeline;
};

struct TraceChoice {
  std::optional<int> step{};  // as `step_to_explain` takes it
  std::string axes{};         // as `axes_of`; empty: the traces say it, or are of one pipeline
};

/// Reads one trace for each rank. Throws as `pipelines_of` and `traced_pipeline`, of which it is
/// made. `goes_on` counts the files, and what would be faster as one more; Stopped is thrown where
/// it says so.
JobExplanation explain_traces(const std::vector<std::filesystem::path>& files,
                              const TraceChoice& choice, std::vector<std::string>& problems,
                              const plan::GoesOn& goes_on = {});

plan::Json to_json(const JobExplanation& job);

/// Leaves timeline.pwt and timeline.json of all ranks, and schedule.csv, scenario.json and
/// costs.json of the slowest pipeline.
void write_explanation(const std::filesystem::path& folder, const JobExplanation& job);

}  // namespace pipewright::trace
