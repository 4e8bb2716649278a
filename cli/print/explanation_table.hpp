#pragma once

// Prints the answer of `explain` as text.

#include <string>

#include "pipewright/trace/explain/job_explanation.hpp"

namespace pipewright::cli {

/// Returns the pipelines, if there are several, and for the slowest one its iteration, ranks and
/// stages, and the changes that save most.
std::string explanation_table(const trace::JobExplanation& job);

}  // namespace pipewright::cli
