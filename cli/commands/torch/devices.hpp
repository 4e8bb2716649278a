#pragma once

// Selects the device that a process computes on, from its options.

#include <string>

#include "options/torch_options.hpp"
#include "pipewright/loop_torch/devices.hpp"

namespace pipewright::cli {

loop::DeviceChoice choice_of(const DeviceOptions& options);

/// Opens the devices. Must be called before LibTorch is used. Throws InputError if there is no such
/// device or CPU branch, or if the options are incompatible.
void open_devices(const DeviceOptions& options, plan::CpuBranch branch);

/// Sets the log of this process and of its child processes.
void open_log(const LogWords& log);

/// Prints the report, unless it is empty, and ends the process.
[[noreturn]] void give_up(const std::string& report);

}  // namespace pipewright::cli
