#pragma once

// What LibTorch has no common words for on all devices. Without the CUDA headers `gpu_absent` says
// so instead.

#include "device/lane.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/rank/memory_meter.hpp"

namespace pipewright::exec {

Gpus find_gpus();

/// The compute lane of a rank: a stream, of its part of the multiprocessors alone where the GPU is
/// divided. Throws InputError where it cannot be divided so.
Lane compute_lane(const RankDevice& where);

/// From now on what this lane allocates on its device is charged to `account`, whichever thread
/// submits the work: LibTorch computes backward on threads of its own.
void charge_lane(const Lane& lane, AccountEntry* account);

}  // namespace pipewright::exec
