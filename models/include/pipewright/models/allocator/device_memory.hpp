#pragma once

// What a device must have for a rank of a training, by name: what LibTorch's allocator reserves,
// CUDA's context and the buffers of NCCL's communicators. A plan fits where a device has as much.

#include <string>
#include <vector>

#include "pipewright/models/allocator/training_replay.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::models {

/// Guesses, in bytes: a context with the kernels that training loads takes 0.4 to 0.6 GB of an A100
/// or H100; a communicator 0.1 to 0.7 GB by its channels and algorithms (NVIDIA/nccl#864, #964;
/// since NCCL 2.22 connections are made when they are first used).
constexpr plan::Bytes cuda_context{500'000'000};
constexpr plan::Bytes of_communicator{200'000'000};

struct DeviceMemory {
  plan::Bytes standing{};       // by parameters, gradients and the optimizer; 0: not told apart
  plan::Bytes allocated{};      // by all tensors, most at once
  plan::Bytes reserved{};       // by the allocator for them
  plan::Bytes context{};        // CUDA's; none on a CPU
  plan::Bytes communicators{};  // NCCL's buffers
  std::string left_out{};       // what nobody counted; empty: nothing
  plan::Bytes total() const { return reserved + context + communicators; }
  plan::Bytes fragmentation() const { return reserved - allocated; }
};
/// `bytes` in all, `standing_bytes` where it is told, `allocated_bytes`, `fragmentation_bytes`,
/// `context_bytes`, `communicator_bytes` and, where something is left out, `left_out`.
plan::Json to_json(const DeviceMemory& memory);

/// Of a GPU whose tensors take so much at once; `left_out` says why nobody knows more.
DeviceMemory gpu_memory(plan::Bytes allocated, const plan::Cut& cut, std::string left_out);
/// Of the pipeline's rank, by a replay of its tensors. Throws as `replay_training`.
DeviceMemory replayed_memory(const plan::TransformerTraining& training, const plan::Cut& cut,
                             int rank);
/// Of all of its ranks; of those that are not the fullest one copy stands for all.
std::vector<DeviceMemory> replayed_memory(const plan::TransformerTraining& training,
                                          const plan::Cut& cut);

}  // namespace pipewright::models
