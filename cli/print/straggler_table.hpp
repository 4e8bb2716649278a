#pragma once

// What `explain` says of a whole job's trace, for people.

#include <string>

#include "pipewright/trace/straggler/straggler_report.hpp"

namespace pipewright::cli {

/// The job, what slows it down and who, what a replay leaves unexplained, and what would help.
std::string straggler_table(const trace::StragglerReport& report);

}  // namespace pipewright::cli
