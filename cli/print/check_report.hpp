#pragma once

// Prints the findings of `schedule --check` as text.

#include <string>

#include "pipewright/trace/files/schedule_file.hpp"

namespace pipewright::cli {

/// Returns the findings: the schedule's name, deadlocks under each communicator layout and kind of
/// transfer, early transfers.
std::string check_report(const std::string& file, const trace::LoweredSchedule& checked);

}  // namespace pipewright::cli
