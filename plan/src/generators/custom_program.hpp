#pragma once

// Descriptors for a user's Program, and the checks that it fits the scenario.

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::plan {

/// Rejects a Program that could not run under any communicator layout. A deadlock under its own
/// layout is not rejected here; the simulator reports it.
void require_runnable(const Program& program);

/// Describes a Program. `document` is the file it was read from, for error messages.
ScheduleDescriptor custom_program(Program program, std::string name,
                                  std::shared_ptr<const JsonDocument> document = nullptr);

/// Describes a Program from a file in torch's format with communication. Instructions that torch's
/// format cannot express are added.
ScheduleDescriptor own_transfers(Program program, std::string name);

}  // namespace pipewright::plan
