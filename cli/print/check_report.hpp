#pragma once

// What `schedule --check` says, for people.

#include <string>

#include "pipewright/trace/files/schedule_file.hpp"

namespace pipewright::cli {

/// What the checks found, for people: the schedule's name, deadlocks under each communicator layout
/// and kind of transfer, early transfers.
std::string check_report(const std::string& file, const trace::LoweredSchedule& checked);

}  // namespace pipewright::cli
