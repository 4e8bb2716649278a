#pragma once

// What LibTorch has no common words for on all devices. Without the CUDA headers `gpu_absent` says
// so instead.

#include "pipewright/exec/device/capture.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/memory/memory_meter.hpp"

namespace pipewright::exec {

/// `as_launched`: kernels are loaded with their first launch, not all at once.
Gpus find_gpus(bool as_launched);

/// What LibTorch keeps for cuBLAS on this thread's stream of the device.
plan::Bytes workspaces_of_stream(const RankDevice& where);
/// Of all streams.
void release_workspaces();

/// The stream on which a rank computes, of its part of the multiprocessors alone where the GPU is
/// divided. Throws InputError where it cannot be divided so.
Stream compute_stream(const RankDevice& where);

/// From now on what this stream allocates on its device is charged to `account`, whichever thread
/// submits the work: LibTorch computes backward on threads of its own.
void charge_stream(const Stream& stream, AccountEntry* account);

/// Captures CUDA graphs.
std::unique_ptr<Capturer> make_graph_capturer(AccountEntry* account);

}  // namespace pipewright::exec
