#pragma once

// Autoregressive generation over the stages of a pipeline. Each stage has a KV cache per sequence,
// so that each step processes only one token. Several sequences are in flight at once, so that
// stages do not idle while a token passes through the others.

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
  int new_tokens = 32;  // maximum per sequence
  TokenChoice choice{};
  std::vector<std::int64_t> stop{};  // tokens that end a sequence; included in the result
  /// Maximum number of sequences in flight, each with a KV cache in memory. 0: twice the number of
  /// ranks. With fewer than the number of ranks, some rank always waits.
  int under_way = 0;
};

class TokenGenerator {
 public:
  /// A function that is called on the first rank's thread for each new token, in order within a
  /// sequence.
  using TokenCallback = std::function<void(std::size_t sequence, std::int64_t token)>;

  /// Builds the layers, as InferencePipeline does. Throws InputError that names the first layer
  /// that cannot decode: those of `gpt`, `transformer` and `hf` can (GeneratingLayer).
  explicit TokenGenerator(PipelineModule module, ForwardOptions options = {});
  ~TokenGenerator();

  /// Load weights as InferencePipeline does.
  void restore(const exec::Checkpoint& checkpoint);
  void take_weights(const exec::Snapshot& training);

  /// Returns the continuation of each prompt, without the prompt. It equals, token by token, what a
  /// single process without KV cache produces, on any number of ranks, unless logits differ by no
  /// more than rounding. All processes of a job must pass the same prompts and options, and get the
  /// same result. Throws InputError for an empty prompt, for a token outside the vocabulary, or if
  /// a sequence would exceed the model's maximum length; otherwise fails as InferencePipeline::run
  /// does.
  std::vector<Sequence> generate(const std::vector<Sequence>& prompts,
                                 const GenerationOptions& options, const TokenCallback& heard = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipewright::engine
