#pragma once

// The requests of one rank of a transformer training to LibTorch's allocator, tensor by tensor, and
// the memory that the allocator reserves for them: two steps in Megatron-LM's order, from the first
// parameter on. The only input is sizes, nothing is fitted. docs/time-and-memory.md describes the
// stream.

#include "pipewright/models/allocator/caching_allocator.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::models {

/// The first step creates the optimizer state; the second starts with the cache that the first
/// leaves.
constexpr int replayed_steps = 2;

/// One device of a training.
struct ReplayedRank {
  int rank = 0;  // in the pipeline
  int copy = 0;  // index among the replicas that partition the optimizer state
};

/// Replays the training on one rank. ZeRO 0 and 1 work as in Megatron-LM; 2 and 3 as in PyTorch's
/// FSDP, which gathers and reduces layer by layer. A split backward keeps the operands of its
/// weight gradients, as the zero-bubble schedules' implementation does. Throws InputError if the
/// stream is not known: for 32-bit products, for materialized scores with context parallelism, and
/// for schedules that do not support the sizes.
AllocatorCounters replay_training(const plan::TransformerTraining& training, const plan::Cut& cut,
                                  const ReplayedRank& which);

/// Returns each pipeline rank's peak bytes of tensors: the same replay without the allocator. The
/// allocator rounds some blocks up, so its own count is slightly higher. Throws as
/// `replay_training` does.
std::vector<plan::Bytes> allocated_by_rank(const plan::TransformerTraining& training,
                                           const plan::Cut& cut);

/// Returns the replay that reserves most among the rank's data-parallel replicas, of which at most
/// eight are tried.
AllocatorCounters fullest_replay(const plan::TransformerTraining& training, const plan::Cut& cut,
                                 int rank);

}  // namespace pipewright::models
