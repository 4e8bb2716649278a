#pragma once

#include <string>

#include "pipewright/plan/schedules/schedule_request.hpp"

namespace pipewright::cli {

/// "1,1,1", "1,1,1,0.5" or, with a time for every stage, "1/2,1/2,1/1,0.5": forward, input
/// gradient, weight gradient and transfer. Throws InputError that names the part.
plan::ActionTimes parse_times(const std::string& text);

}  // namespace pipewright::cli
