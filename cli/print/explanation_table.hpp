#pragma once

// What `explain` says, for people.

#include <string>

#include "pipewright/loop/explain/explanation.hpp"

namespace pipewright::cli {

/// What traces say, for people: the iteration, its ranks and stages, and the changes that save
/// most.
std::string explanation_table(const loop::TraceExplanation& explanation);

}  // namespace pipewright::cli
