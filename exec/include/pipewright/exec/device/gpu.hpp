#pragma once

// Functions for GPUs without a device-independent equivalent in LibTorch. In builds without the
// CUDA headers, `gpu_absent` implements them and reports that.

#include "pipewright/exec/device/capture.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/memory/memory_meter.hpp"

namespace pipewright::exec {

/// Finds the machine's GPUs. `as_launched`: each kernel is loaded at its first launch instead of
/// all at once.
Gpus find_gpus(bool as_launched);

/// Returns the bytes that LibTorch retains for cuBLAS on this thread's stream of the device.
plan::Bytes workspaces_of_stream(const RankDevice& where);
/// Frees the workspaces of all streams.
void release_workspaces();

/// Returns the stream on which a rank computes. If the GPU is partitioned, the stream uses the
/// multiprocessors of its part only. Throws InputError if it cannot be partitioned like this.
Stream compute_stream(const RankDevice& where);

/// Charges later allocations of this stream on its device to `account`, whichever thread submits
/// the work: LibTorch runs backwards on its own threads.
void charge_stream(const Stream& stream, AccountEntry* account);

/// Makes a capturer of CUDA graphs.
std::unique_ptr<Capturer> make_graph_capturer(AccountEntry* account);

}  // namespace pipewright::exec
