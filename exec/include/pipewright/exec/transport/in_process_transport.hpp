#pragma once

// The transport between threads of one process, which pass tensors by reference.

#include <memory>

#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// All `ranks` are threads of this process and share this object. `wait_until_taken`: a send
/// returns only then.
std::unique_ptr<Transport> make_in_process_transport(int ranks, bool wait_until_taken = false);

}  // namespace pipewright::exec
