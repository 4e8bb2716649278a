#pragma once

#include <memory>

#include "pipewright/exec/job.hpp"
#include "pipewright/exec/transport.hpp"

namespace pipewright::exec {

struct GlooOptions {
  plan::CommunicatorLayout communicators = plan::CommunicatorLayout::Edge;
  /// Whether what a stage passes on may change its shape from microbatch to microbatch. If not, the
  /// first transfer of each kind says it for all, and receives are posted before they are asked
  /// for.
  bool dynamic_shapes = false;
  bool wait_until_taken = false;  // a send returns only then
};

/// Between the processes of a job over Gloo, which moves CPU tensors through TCP. This process
/// holds the one rank that it has in the job. Every rank of the job makes its transport at the same
/// point. A failed connection or rank fails the job. `job` must outlive the transport.
std::unique_ptr<Transport> make_gloo_transport(Job& job, GlooOptions options = {});

}  // namespace pipewright::exec
