#pragma once

// Which host NCCL is to take this process's for, where processes share a GPU.

#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// All ranks of the job call it, before NCCL is first used: they tell each other over `transport`
/// which GPU they have, and those that NCCL would refuse for sharing one get a host of their own
/// (NCCL_HOSTID). A user's own word stays.
void agree_on_hosts(Job& job, Transport& transport, at::Device device);

}  // namespace pipewright::exec
