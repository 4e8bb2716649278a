#pragma once

// The transport between GPUs of several processes.

#include <memory>

#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// Makes a transport between the processes of a job over NCCL, for GPU tensors. Each process has
/// one rank, on the GPU `device`, which no other process uses. Transfers are queued on the
/// communicators that the Program specifies and overlap compute; no call blocks until the device
/// has finished. CPU data, such as sizes and names, goes over Gloo. Every rank of the job must make
/// its transport at the same point. `job` must outlive the transport. Throws InputError if NCCL
/// cannot be loaded.
std::unique_ptr<Transport> make_nccl_transport(Job& job, at::Device device,
                                               TransferOptions options = {});

}  // namespace pipewright::exec
