#pragma once

// What a microbatch leaves on a stage until its backward has run, by name. Bytes of 16-bit
// training: what Korthikanti et al. (arXiv 2205.05198, 4.1) count, with what TransformerEngine's
// modules and their attention keep instead.

#include "pipewright/models/megatron/megatron_memory.hpp"
#include "rank_stages.hpp"

namespace pipewright::models::megatron {

/// How attention is computed where this run's is: never Auto.
AttentionBackend attention_of(const MegatronRun& run);

/// Tokens of a microbatch on this rank, whole and as the sequence-parallel sections have them.
struct Tokens {
  long long whole = 0;
  long long share = 0;
};
Tokens tokens_of(const MegatronRun& run, bool decodes = false);
/// Bytes of a hidden state between layers.
long long hidden_state(const MegatronRun& run);

/// Of a microbatch, with recomputation.
Holdings kept_of_stage(const MegatronRun& run, const RankStage& stage);
/// What comes back for the backward of a group of layers that is computed again.
long long brought_back(const MegatronRun& run, const RankStage& stage);
/// The most that the backward of any layer needs beside what is kept.
long long backward_work(const MegatronRun& run, const RankStage& stage);
/// Vocabulary-wide numbers while the loss is computed.
long long loss_work(const MegatronRun& run, const RankStage& stage);
/// Numbers of the logits on this rank.
long long logits_of(const MegatronRun& run);

}  // namespace pipewright::models::megatron
