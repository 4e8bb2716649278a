#pragma once

// What a rank of a transformer's training asks of LibTorch's allocator, tensor after tensor, and
// what the allocator reserves for it: two steps by Megatron-LM's order, from the first parameter
// on. Sizes alone go in, nothing is fitted; docs/time-and-memory.md has the stream.

#include "pipewright/models/allocator/caching_allocator.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::models {

/// The optimizer's states come with the first; the second meets what is left of its cache.
constexpr int replayed_steps = 2;

/// One device of a training.
struct ReplayedRank {
  int rank = 0;  // of the pipeline
  int copy = 0;  // of those that share out the optimizer's state
};

/// ZeRO 0 and 1 as Megatron-LM has them; 2 and 3 as PyTorch's FSDP: layer by layer gathered and
/// reduced. A backward in halves keeps the operands of its weight gradients, as the zero-bubble
/// schedules' implementation does. Throws InputError where nobody knows the stream: products in 32
/// bits, written scores of a sequence that is cut, schedules that do not take the sizes.
AllocatorCounters replay_training(const plan::TransformerTraining& training, const plan::Cut& cut,
                                  const ReplayedRank& which);

/// Peak bytes of tensors, by pipeline rank: the same replay without the allocator. The allocator
/// rounds some blocks up, so its own count is slightly higher. Throws like `replay_training`.
std::vector<plan::Bytes> allocated_by_rank(const plan::TransformerTraining& training,
                                           const plan::Cut& cut);

/// Of the rank's copies, of which at most eight are looked at, the one that reserves most.
AllocatorCounters fullest_replay(const plan::TransformerTraining& training, const plan::Cut& cut,
                                 int rank);

}  // namespace pipewright::models
