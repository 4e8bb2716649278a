#pragma once

// The Program of an evaluation amid a training.

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Forwards alone, of so many microbatches in each of the pipelines, over the stages of a trained
/// Program as they lie; where a stage lies on several ranks, on the first.
Program evaluation_program(const Program& trained, int microbatches, int replicas);

}  // namespace pipewright::plan
