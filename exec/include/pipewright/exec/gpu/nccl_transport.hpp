#pragma once

// The transport between GPUs of several processes.

#include <memory>

#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// Between the processes of a job over NCCL, which moves the tensors of GPUs: each process has one
/// rank, on the GPU `device`, which no other process uses. Transfers are queued by the
/// communicators that the Program asks for and run beside the compute; nothing waits for the
/// device. What lies on the CPU, such as sizes and names, goes over Gloo. Every rank of the job
/// makes its transport at the same point. `job` must outlive it. Throws InputError where NCCL
/// cannot be loaded.
std::unique_ptr<Transport> make_nccl_transport(Job& job, at::Device device,
                                               TransferOptions options = {});

}  // namespace pipewright::exec
