#pragma once

// Everything that the trace of a whole job says about its stragglers, as one value: how much they
// slow the steps down, which workers they are, what a replay does not explain, and which remedies
// would help.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/trace/straggler/job_remedies.hpp"
#include "pipewright/trace/straggler/job_timeline.hpp"
#include "pipewright/trace/straggler/launch_delays.hpp"
#include "pipewright/trace/straggler/microbatch_lengths.hpp"
#include "pipewright/trace/straggler/sampled_steps.hpp"

namespace pipewright::trace {

struct StragglerReport {
  std::string file;
  std::size_t events = 0, events_left_out = 0;
  std::size_t negative_events = 0;  // with a negative duration, which is used as recorded
  double least_event_s = 0;         // the most negative one
  JobSteps steps;
  StragglerMetrics metrics;
  std::vector<double> over_peers;    // by worker: its compute time relative to its stage in the
                                     // other replicas
  std::vector<double> own_slowness;  // by worker: the part of it that is the worker's own
  std::vector<double> compute_s;     // by worker: mean compute time per step
  std::vector<int> workers;          // slowest first
  MicrobatchLengths lengths;
  LaunchDelays delays;
  Remedies remedies;
  std::string schedule;                // "1f1b, 4 ranks, 4 microbatches", or "unknown"
  std::optional<SampledSteps> days{};  // set if sampling was requested
};

/// Explains the stragglers of a file. `only` lists steps by number; empty: all whole steps. Throws
/// as `read_job_trace`, `with_steps` and `job_steps` do.
StragglerReport explain_stragglers(const std::filesystem::path& file,
                                   std::vector<std::string>& problems,
                                   const std::vector<int>& only = {});
/// Explains the stragglers of a trace that was already read. Throws as `job_steps` does.
StragglerReport explain_stragglers(const JobTrace& trace);

/// Names the causes of the slowdown, the one first whose best remedy saves most.
std::string reading_of(const StragglerReport& report);

/// Returns the object under `straggler`: the names of the published results, and additional ones.
plan::Json to_json(const StragglerReport& report);
/// Returns the whole document that `explain --json` prints: `file` and `straggler`.
plan::Json document_of(const StragglerReport& report);

}  // namespace pipewright::trace
