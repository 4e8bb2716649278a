#pragma once

// The devices that a scenario's ranks compute on.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/job/job.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::loop {

/// The devices that ranks compute on: the CPU, or all GPUs, over which the ranks are spread. Ranks
/// that share a GPU may each be confined to a part of its multiprocessors.
struct DeviceChoice {
  bool gpu = false;
  bool own_multiprocessors = false;
};

/// Loads the libraries of the device and pins the CPU's instruction set. Call it before LibTorch is
/// used. Throws InputError if the device or the instruction set is not available.
void open_devices(const DeviceChoice& choice, plan::CpuBranch branch);

/// Returns the devices by rank of the job, for ranks that are threads of this process, or for the
/// one rank that this process has in `job`. Empty means the CPU.
std::vector<exec::RankDevice> devices_for(const DeviceChoice& choice, int ranks,
                                          const exec::Job* job);

/// Returns true if the ranks are on different devices, so that boundary tensors must be copied.
bool on_different_devices(const std::vector<exec::RankDevice>& devices);

/// Several ranks of this process on one GPU. Each is predicted as if it had a GPU to itself or, if
/// it has multiprocessors of its own, a GPU as large as its part.
struct SharedGpu {
  int ranks_per_gpu = 2;  // on the GPU with the most ranks
  bool own_multiprocessors = false;
  friend bool operator==(const SharedGpu&, const SharedGpu&) = default;
};
/// Returns nothing if no GPU is shared. `devices` is by rank.
std::optional<SharedGpu> shared_gpu(const std::vector<exec::RankDevice>& devices);
std::string in_words(const SharedGpu& shared);
/// Returns the keys `ranks_per_gpu` and `own_multiprocessors`.
plan::Json to_json(const SharedGpu& shared);

}  // namespace pipewright::loop
