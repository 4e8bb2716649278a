#pragma once

// Layers that decode incrementally: from a sequence's next tokens and a KV cache of those before,
// they compute the same as from the whole sequence.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pipewright::engine {

/// The KV cache of one layer for one sequence: the keys and values of its tokens.
class KvCache {
 public:
  /// Creates a cache for a sequence of at most `room` tokens.
  explicit KvCache(std::int64_t room) : room_(room) {}

  std::int64_t room() const { return room_; }
  /// Returns the number of cached tokens, before the next ones.
  std::int64_t tokens() const { return tokens_; }
  /// Adds the next tokens to the count. Call it once the layer has processed them.
  void advance(std::int64_t tokens) { tokens_ += tokens; }

  struct KeysAndValues {
    at::Tensor keys, values;
  };
  /// Appends the keys and values of the next tokens, [batch, heads, tokens, channels], for one of
  /// the layer's groups of heads. Returns them preceded by all cached ones.
  KeysAndValues with(std::size_t group, const KeysAndValues& next);

 private:
  std::int64_t room_;
  std::int64_t tokens_ = 0;
  std::vector<KeysAndValues> groups_;  // with room for all tokens
};

/// Interface of layers that can decode, implemented in addition to exec::Layer. The layers of
/// `gpt`, `transformer` and `hf` implement it.
class GeneratingLayer {
 public:
  virtual ~GeneratingLayer() = default;
  /// Processes the next tokens, [batch, tokens, …]: all of a prompt first, then one at a time. The
  /// last layer returns the logits of the last token only.
  virtual at::Tensor decode_step(const at::Tensor& next, KvCache& memory) = 0;
  /// Throws InputError if a sequence cannot start with `prompt` tokens and grow to `all`.
  virtual void check_length(std::int64_t /*prompt*/, std::int64_t /*all*/) const {}
  /// Throws InputError if the layer takes tokens and one of these is not in its vocabulary.
  virtual void check_tokens(const std::vector<std::int64_t>& /*tokens*/) const {}
};

/// Returns the positions of the next tokens, int64 [1, tokens].
at::Tensor next_places(const at::Tensor& next, const KvCache& memory);
/// Throws InputError if there are fewer positions than tokens in a sequence. `field` names the
/// model field that sets the number of positions.
void require_positions(const char* field, std::int64_t positions, std::int64_t tokens);

}  // namespace pipewright::engine
