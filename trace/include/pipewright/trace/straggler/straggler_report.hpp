#pragma once

// What the trace of a whole job says of its stragglers, in one value: how much longer steps take
// for them, who they are, what a replay leaves unexplained, and what would help.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/trace/straggler/job_days.hpp"
#include "pipewright/trace/straggler/job_remedies.hpp"
#include "pipewright/trace/straggler/job_timeline.hpp"
#include "pipewright/trace/straggler/launch_delays.hpp"
#include "pipewright/trace/straggler/microbatch_lengths.hpp"

namespace pipewright::trace {

struct StragglerReport {
  std::string file;
  std::size_t events = 0, events_left_out = 0;
  JobSteps steps;
  StragglerMetrics metrics;
  std::vector<double> over_peers;    // by worker: its compute over that of its stage's others
  std::vector<double> own_slowness;  // by worker: what of it is its own
  std::vector<double> compute_s;     // by worker: of a step, in the mean
  std::vector<int> workers;          // the slowest first
  MicrobatchLengths lengths;
  LaunchDelays delays;
  Remedies remedies;
  std::string schedule;           // "1f1b, 4 ranks, 4 microbatches", or "unknown"
  std::optional<JobDays> days{};  // where somebody asked for draws
};

/// `only`: steps by their numbers; empty: all that are whole. Throws as `read_job_trace`,
/// `with_steps` and `job_steps` do.
StragglerReport explain_stragglers(const std::filesystem::path& file,
                                   std::vector<std::string>& problems,
                                   const std::vector<int>& only = {});
/// The same of a trace that was read. Throws as `job_steps` does.
StragglerReport explain_stragglers(const JobTrace& trace);

/// What the metrics say, in a sentence or two.
std::string reading_of(const StragglerReport& report);

/// The object under `straggler`: names as in the published answers, and more.
plan::Json to_json(const StragglerReport& report);
/// The whole document that `explain --json` prints: `file` and `straggler`.
plan::Json document_of(const StragglerReport& report);

}  // namespace pipewright::trace
