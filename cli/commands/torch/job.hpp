#pragma once

// Runs a command's part of a job of processes that train together, and ends with the job.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "options/torch_options.hpp"
#include "pipewright/loop_torch/measured_timeline.hpp"
#include "pipewright/loop_torch/membership.hpp"

namespace pipewright::cli {

std::chrono::milliseconds milliseconds_of(double seconds);
loop::MembershipOptions membership_options(const DeviceOptions& device, const TimeLimits& limits);

/// Prints to stderr how accurately the clocks are synchronized, if ranks had separate clocks.
void say_clocks(const loop::MeasuredTimeline& measured);

using MainFunction = int (*)(int argc, const char* const* argv);

/// Sets the main function of this program if it does nothing but run commands. Ranks that this
/// process starts may then be forks that call it (exec::LocalJob::main).
void set_main_of_ranks(MainFunction main);

/// Returns exec::LocalJob::main. It is null without set_main_of_ranks, and on GPUs: CUDA does not
/// work in a fork of a process that has used it.
std::function<int(const std::vector<std::string>& words)> main_of_ranks(
    const DeviceOptions& device);

/// Starts this program `count` times with the same arguments except `--processes`, as the ranks of
/// a job on this machine, and waits for them. Returns the exit code: that of a failed rank, if one
/// failed.
int start_as_processes(int count, const DeviceOptions& device, const TimeLimits& limits);

/// Runs `part` and returns the exit code of this process's part of a job. One process prints why a
/// job ended. Without a job, exceptions of `part` are rethrown.
int code_of_part(loop::Membership& members, const std::function<int()>& part);

}  // namespace pipewright::cli
