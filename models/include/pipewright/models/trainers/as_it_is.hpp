#pragma once

// Megatron-LM's arguments as one run on a given number of GPUs: nothing is searched, and all
// settings are kept. The result is the same run as from a row of a table of runs
// (measured/measured_run.hpp), so its predictions are the same, too.

#include <string>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/trainers/megatron_arguments.hpp"

namespace pipewright::models {

/// Returns the run with as many data-parallel replicas as `gpus` allow. `kind`: "H100". Throws
/// InputError that lists all sizes that do not fit together: `file: --option …`.
MeasuredRun run_as_it_is(const DescribedTransformer& told, const std::string& file, int gpus,
                         const std::string& kind);

}  // namespace pipewright::models
