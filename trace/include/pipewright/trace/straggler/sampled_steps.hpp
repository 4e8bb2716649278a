#pragma once

// Samples steps of a traced job from its recorded steps and replays them: percentiles of the step
// time, and their error on steps that were held out.

#include <cstddef>
#include <vector>

#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/draws/draw_ranges.hpp"
#include "pipewright/sim/jitter/together.hpp"
#include "pipewright/trace/straggler/job_steps.hpp"

namespace pipewright::trace {

/// Returns what each worker did in each step, as `simulate --jitter` reads it. A worker is a rank
/// of one of the pipelines, and a stage of the model is chunk · ranks + rank.
models::RecordedSteps record_of(const JobSteps& steps);

/// Samples steps in which each worker takes one recorded step as a whole, including its launch
/// delays. Operations that begin together take one member's delay: what a rank waits for its peers
/// is not a delay of its own. How often all workers take the same step follows the correlation of
/// their compute times (sim/jitter/together.hpp).
sim::Draws sample_job(const JobSteps& steps, const sim::SamplingOptions& options = {});

/// Returns confidence intervals of the figures for as many other steps. A single step gives none.
sim::SampledRanges job_ranges(const JobSteps& steps, const sim::SamplingOptions& options = {});

/// A sampled figure and the measured one.
struct SampledFigure {
  double sampled_s = 0;
  double measured_s = 0;
  sim::SampledRange range{};
  double error() const { return sampled_s / measured_s - 1; }
};

struct SampledSteps {
  std::size_t draws = 0;
  sim::JitterCorrelation together{};
  double mean_s = 0, p50_s = 0, p95_s = 0, p99_s = 0;
  sim::SampledRanges ranges{};  // empty if only one step was traced
  /// Validation: samples from every second step, from the first on, compared with the other steps
  /// as measured.
  std::size_t kept_steps = 0;  // number of those other steps; 0: too few
  SampledFigure kept_mean{}, kept_p50{}, kept_p95{};
};
SampledSteps sample_steps(const JobSteps& steps, const sim::SamplingOptions& options = {});

/// Returns only the steps at these indices.
JobSteps chosen_steps(const JobSteps& steps, const std::vector<std::size_t>& places);

plan::Json to_json(const SampledSteps& days);

}  // namespace pipewright::trace
