#pragma once

#include <vector>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/job/job.hpp"
#include "torch_options.hpp"

namespace pipewright::cli {

/// Loads what the device needs, and chooses with what the CPU computes. To be called before
/// LibTorch is used. Throws InputError where there is no such device or no such branch.
void open_devices(const DeviceOptions& options, plan::CpuBranch branch);

/// By rank of the job, for ranks that are threads of this process, or for the one that this process
/// is in `job`. Empty: the CPU.
std::vector<exec::RankDevice> devices_for(const DeviceOptions& options, int ranks,
                                          const exec::Job* job);

/// Whether some ranks have to copy what they hand to others.
bool lie_apart(const std::vector<exec::RankDevice>& devices);

}  // namespace pipewright::cli
