#pragma once

// Prints sampled iterations as text and as JSON.

#include <string>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/draws/draw_ranges.hpp"
#include "pipewright/trace/straggler/sampled_steps.hpp"

namespace pipewright::cli {

std::string draws_table(const sim::Draws& draws, const sim::SampledRanges& ranges,
                        const sim::SamplingOptions& options, const sim::Jitter& jitter);
plan::Json draws_json(const sim::Draws& draws, const sim::SampledRanges& ranges,
                      const sim::SamplingOptions& options, const sim::Jitter& jitter);

/// Returns the samples of a traced job, compared with steps that were not used for them.
std::string draws_table(const trace::SampledSteps& days);

}  // namespace pipewright::cli
