#pragma once

// A training that goes on by itself: a parent that starts its ranks, and starts them again from the
// newest checkpoint when they have failed.

#include "options/torch_options.hpp"
#include "pipewright/loop_torch/slow_for_good.hpp"

namespace pipewright::cli {

/// Whether this process is to be such a parent: no launcher has started it, and no parent.
bool is_supervisor(const TrainOptions& options);

/// Starts this program again with the same words, as ranks (--processes) or as one process, until
/// the training is done, interrupted, refused as bad input, or has failed --tries times without a
/// newer checkpoint in between. Gives the exit code. After a SIGUSR1 places that were given up are
/// used again, from the next checkpoint on.
int supervise(const TrainOptions& options);

/// What becomes of the place of a rank that is slow for good, by the supervisor that has started
/// this process.
loop::SlowPlace place_of_slow();

/// Throws plan::InputError where nobody would use them.
void check_spares(const TrainOptions& options);

/// The same options for as many ranks as a launcher has started, where --replan allows for fewer
/// than the scenario has. With --supervise, processes that are too many are no ranks from here on.
/// Throws plan::InputError where there are too few for one rank of each copy.
TrainOptions for_ranks_of_launcher(const TrainOptions& options);

/// Whether this process is one too many, after it has waited for the end of the job. Throws
/// exec::JobFailure where the job has not done its work.
bool stood_by();

}  // namespace pipewright::cli
