#pragma once

// Layers that go on with a sequence: of its next tokens alone they make what they would make of
// them at the end of the whole sequence, as each remembers what it needs of the tokens before.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pipewright::engine {

/// What one layer remembers of one sequence: the keys and values of its tokens.
class SequenceMemory {
 public:
  /// Of a sequence that will have `room` tokens at most.
  explicit SequenceMemory(std::int64_t room) : room_(room) {}

  std::int64_t room() const { return room_; }
  /// Those before the tokens that come next.
  std::int64_t tokens() const { return tokens_; }
  /// After all that a layer does with them.
  void advance(std::int64_t tokens) { tokens_ += tokens; }

  struct KeysAndValues {
    at::Tensor keys, values;
  };
  /// Remembers those of the tokens that come next, [batch, heads, tokens, channels], for one of the
  /// layer's groups of heads, and gives them behind all before.
  KeysAndValues with(std::size_t group, const KeysAndValues& next);

 private:
  std::int64_t room_;
  std::int64_t tokens_ = 0;
  std::vector<KeysAndValues> groups_;  // with room for all tokens
};

/// Beside exec::Layer. `gpt`, `transformer` and `hf` are made of such.
class GeneratingLayer {
 public:
  virtual ~GeneratingLayer() = default;
  /// Of the tokens that come next, which are all of a prompt, or then one at a time: [batch,
  /// tokens, …]. The last layer gives logits of the last token alone.
  virtual at::Tensor go_on(const at::Tensor& next, SequenceMemory& memory) = 0;
  /// Throws InputError where a sequence cannot begin with `prompt` tokens and come to have `all`.
  virtual void check_length(std::int64_t /*prompt*/, std::int64_t /*all*/) const {}
};

/// The positions of the tokens that come next, int64 [1, tokens].
at::Tensor next_places(const at::Tensor& next, const SequenceMemory& memory);
/// Throws InputError where there are fewer positions than a sequence will have tokens. `field`: of
/// the model, that says how many.
void require_positions(const char* field, std::int64_t positions, std::int64_t tokens);

}  // namespace pipewright::engine
