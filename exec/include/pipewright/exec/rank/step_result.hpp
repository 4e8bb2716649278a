#pragma once

// What the end of a step or of an evaluation tells, whoever runs it: ranks, a stage by itself, or a
// training without a pipeline.

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

/// Of the microbatches of a batch, each of which one member knows: all of them. Every member has an
/// entry for each, which is as it was made where it does not know it.
std::vector<MicrobatchLoss> shared_losses(const Members& members,
                                          const std::vector<MicrobatchLoss>& own);

/// Puts the norm into the result, and whether the step is skipped for it. Waits for the device.
GradientUse use_and_tell(const TrainingSetup& setup, double loss_scale, const GradientNorm& norm,
                         StepResult& result);

}  // namespace pipewright::exec
