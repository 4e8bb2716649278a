#pragma once

// What draws of an iteration come to, for people and for programs.

#include <string>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/draws/draw_ranges.hpp"
#include "pipewright/trace/straggler/job_days.hpp"

namespace pipewright::cli {

std::string draws_table(const sim::Draws& draws, const sim::DrawRanges& ranges,
                        const sim::DrawOptions& options, const sim::Jitter& jitter);
plan::Json draws_json(const sim::Draws& draws, const sim::DrawRanges& ranges,
                      const sim::DrawOptions& options, const sim::Jitter& jitter);

/// Of a traced job, beside steps that nobody learned from.
std::string draws_table(const trace::JobDays& days);

}  // namespace pipewright::cli
