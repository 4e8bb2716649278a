#pragma once

// Sequences that a decoder goes on with, token by token, over the stages of a pipeline. Each stage
// keeps the keys and values of its layers for each sequence, so that a token costs the work of one;
// several sequences are under way at once, so that no stage waits for a token to come round.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "pipewright/engine/forward_options.hpp"
#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/engine/token_choice.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"

namespace pipewright::engine {

using Sequence = std::vector<std::int64_t>;

struct GenerationOptions {
  int new_tokens = 32;  // of a sequence, at most
  TokenChoice choice{};
  std::vector<std::int64_t> stop{};  // tokens that end a sequence, as its last
  /// Sequences that are under way at once, each of which has its keys and values in memory. 0:
  /// twice as many as ranks; with fewer than ranks some rank always waits.
  int under_way = 0;
};

class TokenGenerator {
 public:
  /// Called on the first rank's thread with each new token, in the order of positions of a
  /// sequence.
  using Heard = std::function<void(std::size_t sequence, std::int64_t token)>;

  /// Builds the layers, as InferencePipeline does. Throws InputError that names the layer where one
  /// cannot go on with a sequence: those of `gpt`, `transformer` and `hf` can (GeneratingLayer).
  explicit TokenGenerator(PipelineModule module, ForwardOptions options = {});
  ~TokenGenerator();

  /// As InferencePipeline has them.
  void restore(const exec::Checkpoint& checkpoint);
  void take_weights(const exec::Snapshot& training);

  /// What follows each prompt, without it. Token for token what one process gives that computes
  /// each prefix anew, on any number of ranks, but for logits that differ by no more than rounding.
  /// All processes of a job give the same prompts and options and get the same answer. Throws
  /// InputError for a prompt without tokens, or when a sequence would come to be longer than the
  /// model can have it; otherwise ends as InferencePipeline::run.
  std::vector<Sequence> generate(const std::vector<Sequence>& prompts,
                                 const GenerationOptions& options, const Heard& heard = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipewright::engine
