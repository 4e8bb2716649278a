#pragma once

// Time that training loses to failures and checkpoints, when it resumes from its newest checkpoint.

#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// Times that determine the loss to failures and checkpoints.
struct FailureCosts {
  Seconds checkpoint{};        // training time lost for each checkpoint
  Seconds restart{};           // from a failure until training resumes
  Seconds between_failures{};  // mean over all devices together; failures are independent
};

/// Returns the mean time between failures of `devices` devices, given that of one device.
Seconds between_failures(Seconds of_a_device, int devices);

/// Returns the training time between checkpoints that minimizes the loss: √(2·C·M) for the
/// checkpoint's time C and the time between failures M (Young, CACM 17(9), 1974; the first order of
/// Daly, FGCS 22(3), 2006).
Seconds best_checkpoint_interval(const FailureCosts& costs);

/// Returns the fraction of all time in which training makes progress, with a checkpoint after each
/// `interval` of training:
///   τ / (M·e^(R/M)·(e^((τ+C)/M) − 1))
/// where R is the restart's time (Daly 2006, whose failures are exponential and may also come
/// during a checkpoint or a restart). 1 if nothing fails and checkpoints take no time.
double goodput(const FailureCosts& costs, Seconds interval);

}  // namespace pipewright::plan
