#pragma once

// The memory that a GPU needs for one pipeline rank: the bytes that LibTorch's caching allocator
// reserves, the CUDA context and the buffers of NCCL's communicators. A plan fits if every GPU has
// at least this much.

#include <string>
#include <vector>

#include "pipewright/models/allocator/training_replay.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::models {

/// Guesses, in bytes: a context with the kernels that training loads takes 0.4 to 0.6 GB on an A100
/// or H100. A communicator takes 0.1 to 0.7 GB, depending on its channels and algorithms
/// (NVIDIA/nccl#864, #964; since NCCL 2.22, connections are created on first use).
constexpr plan::Bytes cuda_context{500'000'000};
constexpr plan::Bytes of_communicator{200'000'000};

struct DeviceMemory {
  plan::Bytes standing{};   // parameters, gradients and optimizer state; 0: not known separately
  plan::Bytes allocated{};  // peak of all tensors
  plan::Bytes reserved{};   // reserved by the allocator for them
  plan::Bytes context{};    // the CUDA context; 0 on a CPU
  plan::Bytes communicators{};  // buffers of NCCL
  std::string left_out{};       // why fragmentation is not included; empty: it is included
  plan::Bytes total() const { return reserved + context + communicators; }
  plan::Bytes fragmentation() const { return reserved - allocated; }
};
/// Returns the total of each rank.
std::vector<plan::Bytes> totals_of(const std::vector<DeviceMemory>& ranks);
/// Returns an object with `bytes` (the sum), `standing_bytes` if known, `allocated_bytes`,
/// `fragmentation_bytes`, `context_bytes`, `communicator_bytes` and, if something is left out,
/// `left_out`.
plan::Json to_json(const DeviceMemory& memory);

/// Returns the memory of a GPU whose tensors need `allocated` bytes at their peak. `left_out` says
/// why the allocator could not be replayed.
DeviceMemory gpu_memory(plan::Bytes allocated, const plan::Cut& cut, std::string left_out);
/// Returns the memory of one pipeline rank, from a replay of its tensors. Throws as
/// `replay_training` does.
DeviceMemory replayed_memory(const plan::TransformerTraining& training, const plan::Cut& cut,
                             int rank);
/// Returns the memory of every pipeline rank. Only the rank with the most allocated bytes is
/// replayed for several data-parallel replicas; the others are replayed for one.
std::vector<DeviceMemory> replayed_memory(const plan::TransformerTraining& training,
                                          const plan::Cut& cut);

}  // namespace pipewright::models
