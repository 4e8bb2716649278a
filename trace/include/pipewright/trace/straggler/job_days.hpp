#pragma once

// Steps of a traced job drawn from those of its trace and replayed: what most of them stay below,
// and how near that comes to steps that nobody learned from.

#include <cstddef>
#include <vector>

#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/draws/draw_ranges.hpp"
#include "pipewright/sim/jitter/together.hpp"
#include "pipewright/trace/straggler/job_steps.hpp"

namespace pipewright::trace {

/// What each worker did in each step, as `simulate --jitter` reads it: a worker is a rank of one of
/// the pipelines, and a stage of the model chunk · ranks + rank.
models::RecordedSteps record_of(const JobSteps& steps);

/// Steps in which each worker takes a recorded one whole, how late it began what with it: all
/// workers the same step as often as what they compute is correlated (sim/jitter/together.hpp).
sim::Draws draw_job(const JobSteps& steps, const sim::DrawOptions& options = {});

/// Between which bounds figures of as many other steps lie. Of one step nothing tells.
sim::DrawRanges job_ranges(const JobSteps& steps, const sim::DrawOptions& options = {});

/// A figure of the draws beside that of the measured steps.
struct JobDay {
  double drawn_s = 0;
  double measured_s = 0;
  sim::DrawRange range{};
  double error() const { return drawn_s / measured_s - 1; }
};

struct JobDays {
  std::size_t draws = 0;
  sim::Together together{};
  double mean_s = 0, p50_s = 0, p95_s = 0, p99_s = 0;
  sim::DrawRanges ranges{};  // without steps where one was traced
  /// Draws of every second step, from the first on, beside the others as they were measured.
  std::size_t kept_steps = 0;  // these others; 0: there are too few
  JobDay kept_mean{}, kept_p50{}, kept_p95{};
};
JobDays job_days(const JobSteps& steps, const sim::DrawOptions& options = {});

/// These steps alone, by their places.
JobSteps chosen_steps(const JobSteps& steps, const std::vector<std::size_t>& places);

plan::Json to_json(const JobDays& days);

}  // namespace pipewright::trace
