#pragma once

// Chooses the host name that this process reports to NCCL when processes share a GPU.

#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// All ranks of the job call it before they first use NCCL. They exchange their GPUs over
/// `transport`, and ranks that NCCL would reject because they share a GPU get different host names
/// (NCCL_HOSTID). A name that the user has set is kept.
void agree_on_hosts(Job& job, Transport& transport, at::Device device);

}  // namespace pipewright::exec
