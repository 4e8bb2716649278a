#pragma once

// What `explain` says, for people.

#include <string>

#include "pipewright/trace/explain/job_explanation.hpp"

namespace pipewright::cli {

/// What traces say, for people: the pipelines where there are several, and of the slowest the
/// iteration, its ranks and stages, and the changes that save most.
std::string explanation_table(const trace::JobExplanation& job);

}  // namespace pipewright::cli
