#pragma once

// The devices of a scenario's ranks.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/job/job.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::loop {

/// Where ranks compute: on the CPU, or spread over all GPUs; there, ranks that share one each on
/// their part of the multiprocessors alone, or not.
struct DeviceChoice {
  bool gpu = false;
  bool own_multiprocessors = false;
};

/// Loads what the device needs, and chooses with what the CPU computes. To be called before
/// LibTorch is used. Throws InputError where there is no such device or no such branch.
void open_devices(const DeviceChoice& choice, plan::CpuBranch branch);

/// By rank of the job, for ranks that are threads of this process, or for the one that this process
/// is in `job`. Empty: the CPU.
std::vector<exec::RankDevice> devices_for(const DeviceChoice& choice, int ranks,
                                          const exec::Job* job);

/// Whether some ranks have to copy what they hand to others.
bool lie_apart(const std::vector<exec::RankDevice>& devices);

/// Several ranks of this process on one GPU. Each is predicted as if it had one to itself, or a
/// part as large as its share of the multiprocessors where those are its own.
struct SharedGpu {
  int ranks_per_gpu = 2;  // of the GPU with most
  bool own_multiprocessors = false;
  friend bool operator==(const SharedGpu&, const SharedGpu&) = default;
};
/// Nothing where no GPU is shared. `devices`: by rank.
std::optional<SharedGpu> shared_gpu(const std::vector<exec::RankDevice>& devices);
std::string in_words(const SharedGpu& shared);
/// Keys `ranks_per_gpu` and `own_multiprocessors`.
plan::Json to_json(const SharedGpu& shared);

}  // namespace pipewright::loop
