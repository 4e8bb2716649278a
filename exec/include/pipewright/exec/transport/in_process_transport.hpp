#pragma once

// The transport between threads of one process, which pass tensors by reference.

#include <memory>

#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// Makes a transport for `ranks` threads of this process, which share it. `wait_until_taken`: a
/// send blocks until the receiver has taken the tensors.
std::unique_ptr<Transport> make_in_process_transport(int ranks, bool wait_until_taken = false);

}  // namespace pipewright::exec
