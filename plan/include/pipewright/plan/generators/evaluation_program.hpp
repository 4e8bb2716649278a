#pragma once

// The Program of an evaluation during training.

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// Returns a forward-only Program with this number of microbatches in each pipeline, on the
/// placement of a trained Program. If the first route passes all ranks, all microbatches take it,
/// as in bidirectional schedules. Otherwise each microbatch takes its own route, as when stages
/// have different numbers of copies. With `share_loss` all ranks get the losses; otherwise only
/// those with the last stage do.
Program evaluation_program(const Program& trained, int microbatches, int replicas,
                           bool share_loss = true);

}  // namespace pipewright::plan
