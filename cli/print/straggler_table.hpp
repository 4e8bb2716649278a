#pragma once

// Prints the answer of `explain` for a whole job's trace as text.

#include <string>

#include "pipewright/trace/straggler/straggler_report.hpp"

namespace pipewright::cli {

/// Returns the job, the operations and workers that slow it down, the part that a replay does not
/// explain, and possible remedies.
std::string straggler_table(const trace::StragglerReport& report);

}  // namespace pipewright::cli
