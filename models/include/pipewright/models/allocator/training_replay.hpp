#pragma once

// What a rank of a transformer's training asks of LibTorch's allocator, tensor after tensor, and
// what the allocator reserves for it: three steps by Megatron-LM's order, from the first parameter
// on. Sizes alone go in, nothing is fitted; docs/time-and-memory.md has the stream.

#include "pipewright/models/allocator/caching_allocator.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

/// The optimizer's states come with the first; the others meet what is left of its cache.
constexpr int replayed_steps = 3;

/// One device of a training.
struct ReplayedRank {
  int rank = 0;  // of the pipeline
  int copy = 0;  // of those that share out the optimizer's state
};

struct TrainingReplay {
  AllocatorCounters counters{};
  bool out_of_memory = false;  // then the counters are of that instant
};

/// Throws InputError where nobody knows the stream: products but in 16 bits, weights or gradients
/// in shards (ZeRO 2 and 3), backwards in halves, schedules that do not take the sizes.
TrainingReplay replay_training(const plan::TransformerTraining& training, const plan::Cut& cut,
                               const ReplayedRank& which, const AllocatorOptions& options = {});

/// Of the rank's copies, of which at most eight are looked at, the one that reserves most.
TrainingReplay fullest_replay(const plan::TransformerTraining& training, const plan::Cut& cut,
                              int rank, const AllocatorOptions& options = {});

}  // namespace pipewright::models
