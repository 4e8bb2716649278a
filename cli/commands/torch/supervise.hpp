#pragma once

// A training that goes on by itself: a parent that starts its ranks, and starts them again from the
// newest checkpoint when they have failed.

#include "options/torch_options.hpp"

namespace pipewright::cli {

/// Whether this process is to be such a parent: no launcher has started it, and no parent.
bool is_supervisor(const TrainOptions& options);

/// Starts this program again with the same words, as ranks (--processes) or as one process, until
/// the training is done, interrupted, refused as bad input, or has failed --tries times without a
/// newer checkpoint in between. Gives the exit code.
int supervise(const TrainOptions& options);

/// The same options for as many ranks as a launcher has started, where --replan allows for fewer
/// than the scenario has. Throws plan::InputError where they cannot share the work.
TrainOptions for_ranks_of_launcher(const TrainOptions& options);

}  // namespace pipewright::cli
