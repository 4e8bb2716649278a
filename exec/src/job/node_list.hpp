#pragma once

// Slurm names a job's nodes in a compressed list.

#include <string>

namespace pipewright::exec {

/// The first host of Slurm's compressed list: "node003" of "node[003-007,9],gpu1". Throws
/// InputError that shows a list which is not of this form.
std::string first_host(const std::string& node_list);

}  // namespace pipewright::exec
