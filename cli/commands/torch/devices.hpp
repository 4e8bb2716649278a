#pragma once

// Which device a process computes on, from its options.

#include <string>

#include "options/torch_options.hpp"
#include "pipewright/loop_torch/devices.hpp"

namespace pipewright::cli {

loop::DeviceChoice choice_of(const DeviceOptions& options);

/// To be called before LibTorch is used. Throws InputError where there is no such device or no such
/// branch, or the options do not go together.
void open_devices(const DeviceOptions& options, plan::CpuBranch branch);

/// Sets the log of this process and of those that it starts.
void open_log(const LogWords& log);

/// Says why, if this process is to say it, and ends the process.
[[noreturn]] void give_up(const std::string& report);

}  // namespace pipewright::cli
