#pragma once

// How a command takes part in a job of processes that train together, and ends with it.

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

/// On stderr, where ranks had clocks of their own: how well they are known.
void say_clocks(const loop::MeasuredTimeline& measured);

using MainFunction = int (*)(int argc, const char* const* argv);

/// Sets the main function of this program if it does nothing but run commands. Ranks that this
/// process starts may then be forks that call it (exec::LocalJob::main).
void set_main_of_ranks(MainFunction main);

/// Returns exec::LocalJob::main. It is null without set_main_of_ranks, and on GPUs: CUDA does not
/// work in a fork of a process that has used it.
std::function<int(const std::vector<std::string>& words)> main_of_ranks(
    const DeviceOptions& device);

/// Starts this program again `count` times with the same words but `--processes`, as the ranks of a
/// job on this machine, and waits for them. Returns the exit code: of a rank that failed, if one
/// did.
int start_as_processes(int count, const DeviceOptions& device, const TimeLimits& limits);

/// The exit code of this process's part of a job. Of what ended the job one process prints why.
/// Without a job, what `part` throws is the caller's to catch.
int code_of_part(loop::Membership& members, const std::function<int()>& part);

}  // namespace pipewright::cli
