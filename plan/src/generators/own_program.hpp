#pragma once

// What a Program that somebody wrote declares of itself, and where it is another than the one that
// is asked for.

#include "pipewright/plan/generators/schedule_catalogue.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::plan {

/// Refuses one that could not run under any communicators. That it deadlocks under its own is an
/// answer, which the simulator gives.
void require_runnable(const Program& program);

/// `document` is the file that it was read from, for errors.
ScheduleDescriptor own_program(Program program, std::string name,
                               std::shared_ptr<const JsonDocument> document = nullptr);

/// Of a file in torch's dialect with communication: what torch has no words for is added.
ScheduleDescriptor own_transfers(Program program, std::string name);

}  // namespace pipewright::plan
