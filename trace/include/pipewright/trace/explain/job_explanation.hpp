#pragma once

// Everything that the traces of all ranks of a job show: its pipelines side by side, and where the
// time of the slowest pipeline goes.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/topology.hpp"
#include "pipewright/plan/stopped.hpp"
#include "pipewright/trace/explain/explanation.hpp"

namespace pipewright::trace {

struct ExplainedPipeline {
  std::vector<plan::AxisIndex> place{};  // coordinates in the job; empty if it is the only pipeline
  std::vector<int> ranks{};              // numbers within the job, from the first stage on
  std::vector<std::string> files{};      // trace files in the same order
  double began_s = 0;                    // delay after the first pipeline's start
  double iteration_s = 0;
  /// Time from a rank's first forward to the end of its last backward, for the rank where it is
  /// longest. Pipelines that wait for each other's gradients all have the same iteration time, so
  /// `iteration_s` cannot tell which of them is slowest.
  double actions_s = 0;
  std::vector<double> busy_s{};  // compute time of each rank
};
/// Returns the index, within the pipeline, of the rank with the most compute time.
std::size_t busiest_rank(const ExplainedPipeline& pipeline);
double mean_busy_s(const ExplainedPipeline& pipeline);
/// Returns the coordinates of the rank of a stage, such as "pipe 1, data 0".
std::string place_of_rank(const ExplainedPipeline& pipeline, std::size_t rank);

struct JobExplanation {
  std::vector<ExplainedPipeline> pipelines;
  std::size_t slowest = 0;       // index of the pipeline whose actions take longest
  TraceExplanation explanation;  // the slowest pipeline's
  /// The ranks of all pipelines, pipeline by pipeline, on one clock. Its length runs to the end of
  /// the last pipeline.
  plan::Timeline timeline;
};

struct TraceChoice {
  std::optional<int> step{};  // step number as `step_to_explain` takes it
  std::string axes{};         // as `axes_of` takes them; empty: the traces name the axes, or belong
                              // to one pipeline
};

/// Reads one trace per rank. Throws as `pipelines_of` and `traced_pipeline` do. `continues` counts
/// the files, plus one unit for the alternatives; Stopped is thrown when it asks to stop.
JobExplanation explain_traces(const std::vector<std::filesystem::path>& files,
                              const TraceChoice& choice, std::vector<std::string>& problems,
                              const plan::ProgressCallback& continues = {});

plan::Json to_json(const JobExplanation& job);

/// Writes timeline.pwt and timeline.json of all ranks, and schedule.csv, scenario.json and
/// costs.json of the slowest pipeline.
void write_explanation(const std::filesystem::path& folder, const JobExplanation& job);

}  // namespace pipewright::trace
