#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "pipewright/exec/devices.hpp"
#include "pipewright/exec/job.hpp"

namespace pipewright::cli {

/// Where ranks compute.
struct DeviceOptions {
  std::string device = "cpu";
  bool own_multiprocessors = false;

  bool on_gpu() const { return device == "cuda"; }
};

/// Adds --device and --own-multiprocessors to `command`.
void add_device_options(CLI::App& command, DeviceOptions& options);

/// Loads what the device needs. To be called before LibTorch is used. Throws InputError where there
/// is no such device.
void open_devices(const DeviceOptions& options);

/// By rank of the job, for ranks that are threads of this process, or for the one that this process
/// is in `job`. Empty: the CPU.
std::vector<exec::RankDevice> devices_for(const DeviceOptions& options, int ranks,
                                          const exec::Job* job);

/// Whether some ranks have to copy what they hand to others.
bool lie_apart(const std::vector<exec::RankDevice>& devices);

}  // namespace pipewright::cli
