#pragma once

// Standby processes: more processes than a job's ranks need, so that enough remain when the
// launcher restarts all without one that was lost.

#include <chrono>

#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/job/job.hpp"

namespace pipewright::exec {

/// Makes `job_from_environment` report that the job consists of the launcher's first `ranks`
/// processes. All other processes are standby: their rank is not below the job's size.
void leave_job_to_first(int ranks);

/// Announces that the job has finished. Call on rank 0, before it leaves.
void tell_done(Job& job);

/// Blocks a standby process until the job has finished. Throws JobFailure if the job cannot be
/// reached, or ended without finishing.
void wait_as_spare(JobEnvironment environment,
                   std::chrono::milliseconds join_timeout = JobOptions{}.join_timeout);

}  // namespace pipewright::exec
