#pragma once

// Megatron-LM's arguments as one run on so many GPUs: nothing is searched, what they say is kept.
// It is the run that a row of a table says in its columns (measured/measured_run.hpp), so whoever
// predicts that predicts this.

#include <string>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/trainers/megatron_arguments.hpp"

namespace pipewright::models {

/// As many copies of the pipeline as there are GPUs for. `kind`: "H100". Throws InputError with
/// every size that does not fit another: `file: --option …`.
MeasuredRun run_as_it_is(const DescribedTransformer& told, const std::string& file, int gpus,
                         const std::string& kind);

}  // namespace pipewright::models
