#pragma once

// What a launcher has started beyond the ranks that a job needs: processes that stand by, so that
// there are enough when it starts all of them anew without one that was lost.

#include <chrono>

#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/job/job.hpp"

namespace pipewright::exec {

/// From here on `job_from_environment` says of this process that its job is the launcher's first
/// `ranks` processes. One that is not among them stands by: its rank is not below the job's size.
void leave_job_to_first(int ranks);

/// On rank 0, before it leaves: the job has done its work.
void tell_done(Job& job);

/// Waits until the job, of which this process is no rank, has done its work. Throws JobFailure
/// where it cannot be reached, or has ended without that.
void stand_by(JobEnvironment environment,
              std::chrono::milliseconds join_timeout = JobOptions{}.join_timeout);

}  // namespace pipewright::exec
