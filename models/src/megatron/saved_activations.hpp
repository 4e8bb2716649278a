#pragma once

// The activations that a microbatch leaves on a stage until its backward, by name. Bytes of 16-bit
// training, as counted by Korthikanti et al. (arXiv 2205.05198, 4.1), with the differences of
// TransformerEngine's modules and its attention.

#include "pipewright/models/megatron/megatron_memory.hpp"
#include "rank_stages.hpp"

namespace pipewright::models::megatron {

/// Returns the attention backend that this run uses; never Auto.
AttentionBackend attention_of(const MegatronRun& run);

/// Tokens of a microbatch on this rank: in total, and per rank in the sequence-parallel sections.
struct Tokens {
  long long whole = 0;
  long long share = 0;
};
Tokens tokens_of(const MegatronRun& run, bool decodes = false);
/// Returns the bytes of a hidden state between layers.
long long hidden_state(const MegatronRun& run);

/// Returns the saved activations of a microbatch, after recomputation is taken into account.
MemoryByName kept_of_stage(const MegatronRun& run, const RankStage& stage);
/// Returns the bytes restored for the backward of a recomputed segment of layers.
long long brought_back(const MegatronRun& run, const RankStage& stage);
/// Returns the largest temporary memory of any layer's backward, besides saved activations.
long long backward_work(const MegatronRun& run, const RankStage& stage);
/// Returns the bytes of vocabulary-wide tensors while the loss is computed.
long long loss_work(const MegatronRun& run, const RankStage& stage);
/// Returns the number of logits on this rank.
long long logits_of(const MegatronRun& run);

}  // namespace pipewright::models::megatron
