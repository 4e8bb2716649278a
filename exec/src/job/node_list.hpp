#pragma once

// Parses the compressed list in which Slurm names a job's nodes.

#include <string>

namespace pipewright::exec {

/// Returns the first host of Slurm's compressed list: "node003" for "node[003-007,9],gpu1". Throws
/// InputError that shows a list which is not of this form.
std::string first_host(const std::string& node_list);

}  // namespace pipewright::exec
