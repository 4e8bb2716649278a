#pragma once

// Runs a command's part of a job of processes that train together, and ends with the job.

#include <chrono>
#include <functional>

#include "options/torch_options.hpp"
#include "pipewright/loop_torch/measured_timeline.hpp"
#include "pipewright/loop_torch/membership.hpp"

namespace pipewright::cli {

std::chrono::milliseconds milliseconds_of(double seconds);
loop::MembershipOptions membership_options(const DeviceOptions& device, const TimeLimits& limits);

/// Prints to stderr how accurately the clocks are synchronized, if ranks had separate clocks.
void say_clocks(const loop::MeasuredTimeline& measured);

/// Starts this program `count` times with the same arguments except `--processes`, as the ranks of
/// a job on this machine, and waits for them. Returns the exit code: that of a failed rank, if one
/// failed.
int start_as_processes(int count, const TimeLimits& limits);

/// Runs `part` and returns the exit code of this process's part of a job. One process prints why a
/// job ended. Without a job, exceptions of `part` are rethrown.
int code_of_part(loop::Membership& members, const std::function<int()>& part);

}  // namespace pipewright::cli
