#pragma once

// Fills in the results of a step or an evaluation, for the ranks of an executor, a single stage, or
// a training without a pipeline.

#include <vector>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/rank/reductions.hpp"
#include "pipewright/exec/stage/gradient_norm.hpp"
#include "pipewright/exec/stage/losses.hpp"

namespace pipewright::exec {

/// Puts losses into a StepResult or an Evaluation.
template <class Result>
void tell_losses(const std::vector<MicrobatchLoss>& losses, Result& result) {
  result.loss = mean_loss(losses);
  for (const MicrobatchLoss& own : losses)
    result.losses.push_back(own.loss);
}

/// Returns the losses of all microbatches of a batch, each of which is known to one rank of the
/// group. `own` has an entry for each microbatch, left at its default if this rank does not know
/// it.
std::vector<MicrobatchLoss> shared_losses(const Members& members,
                                          const std::vector<MicrobatchLoss>& own);

/// Puts the gradient norm into the result, and true in `skipped` if the norm makes the step be
/// skipped. Blocks until the device has computed it.
GradientUse use_and_tell(const TrainingSetup& setup, double loss_scale, const GradientNorm& norm,
                         StepResult& result);

}  // namespace pipewright::exec
