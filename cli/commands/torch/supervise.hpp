#pragma once

// Supervised training: a parent process that starts the ranks, and restarts them from the newest
// checkpoint when they have failed.

#include "options/torch_options.hpp"
#include "pipewright/loop_torch/permanent_straggler.hpp"

namespace pipewright::cli {

/// Returns true if this process should be such a parent: no launcher and no parent has started it.
bool is_supervisor(const TrainOptions& options);

/// Starts this program with the same arguments, as ranks (--processes) or as one process, until the
/// training is done, interrupted, rejected as bad input, or has failed --tries times without a
/// newer checkpoint in between. Returns the exit code. After a SIGUSR1 places that were given up
/// are used again, from the next checkpoint on.
int supervise(const TrainOptions& options);

/// Returns what the supervisor that started this process does with the place of a persistently slow
/// rank.
loop::SlowPlace place_of_slow();

/// Throws plan::InputError if spare places are given but would not be used.
void check_spares(const TrainOptions& options);

/// Returns the options for the number of ranks that a launcher has started, if --replan allows
/// fewer than the scenario has. With --supervise, surplus processes are no longer ranks. Throws
/// plan::InputError if there are too few for one rank of each replica.
TrainOptions for_ranks_of_launcher(const TrainOptions& options);

/// Returns true if this process is surplus, after waiting as a spare for the end of the job. Throws
/// exec::JobFailure if the job has not done its work.
bool waited_as_spare();

}  // namespace pipewright::cli
