#pragma once

// What failures and checkpoints take from a training that goes on from its newest checkpoint.

#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

struct FailureCosts {
  Seconds checkpoint{};        // that training loses for each one
  Seconds restart{};           // from a failure until training goes on
  Seconds between_failures{};  // the mean, of all devices together; failures do not know each other
};

/// Of so many devices, each of which fails once in so long on average.
Seconds between_failures(Seconds of_a_device, int devices);

/// Seconds of training between checkpoints that lose least: √(2·C·M) of the checkpoint's time C and
/// the time between failures M (Young, CACM 17(9), 1974; the first order of Daly, FGCS 22(3),
/// 2006).
Seconds best_checkpoint_interval(const FailureCosts& costs);

/// The share of all time in which training gets on, with a checkpoint after each `interval` of it:
///   τ / (M·e^(R/M)·(e^((τ+C)/M) − 1))
/// with the restart's time R (Daly 2006, whose failures are exponential and may also come during a
/// checkpoint or a restart). 1 where nothing fails and checkpoints take no time.
double goodput(const FailureCosts& costs, Seconds interval);

}  // namespace pipewright::plan
