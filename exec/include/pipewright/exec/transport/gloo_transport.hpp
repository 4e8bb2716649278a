#pragma once

// The transport between processes that compute on CPUs.

#include <memory>

#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// Between the processes of a job over Gloo, which moves CPU tensors through TCP. This process
/// holds the one rank that it has in the job. Every rank of the job makes its transport at the same
/// point. A failed connection or rank fails the job. `job` must outlive the transport.
std::unique_ptr<Transport> make_gloo_transport(Job& job, TransferOptions options = {});

}  // namespace pipewright::exec
