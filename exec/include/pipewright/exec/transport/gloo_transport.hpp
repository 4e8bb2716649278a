#pragma once

// The transport between processes that compute on CPUs.

#include <memory>

#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// Makes a transport between the processes of a job over Gloo, which moves CPU tensors through TCP.
/// This process has one rank of the job. Every rank of the job must make its transport at the same
/// point. A failed connection or rank fails the job. `job` must outlive the transport.
std::unique_ptr<Transport> make_gloo_transport(Job& job, TransferOptions options = {});

}  // namespace pipewright::exec
