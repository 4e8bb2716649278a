#pragma once

// The Program of an evaluation amid a training.

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Forwards alone, of so many microbatches in each of the pipelines, over the stages of a trained
/// Program as they lie. Where the first route goes through all ranks, all take it, as in two
/// directions; else each takes its own, as where stages have copies of their own number.
/// `share_loss`: all ranks get the losses; else those that hold the last stage know them.
Program evaluation_program(const Program& trained, int microbatches, int replicas,
                           bool share_loss = true);

}  // namespace pipewright::plan
