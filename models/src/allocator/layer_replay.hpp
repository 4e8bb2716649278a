#pragma once

// The tensors of a transformer's layer, forward and backward, in the order in which Megatron-LM's
// layers of TransformerEngine make and drop them: what is kept, and what is at work beside it.

#include <set>
#include <vector>

#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "tape.hpp"

namespace pipewright::models::replay {

/// Sizes of a rank's layers, in numbers; what `_cut` ends is a device's part of it.
struct LayerSizes {
  LayerSizes(const plan::TransformerTraining& training, const plan::Cut& cut, int copy);

  long long hidden = 0;
  long long tokens = 0;       // of a microbatch, before the cut of sequence parallelism
  long long tokens_cut = 0;   // behind it
  long long state = 0;        // bytes of a hidden state, its part
  long long whole_state = 0;  // … whole
  long long heads_cut = 0;    // query heads
  long long queries_cut = 0;  // channels
  long long keys_cut = 0;     // … of the keys
  long long values_cut = 0;   // … of what comes out of the heads
  long long scores_cut = 0;   // numbers of all heads' scores, where they are written
  long long q_rank = 0, kv_rank = 0, rope = 0;
  long long up_keys_values_cut = 0;  // channels of latent keys and values of all heads
  long long feed_forward_cut = 0;
  long long gates = 1;          // matrices from the hidden state
  long long routed_tokens = 0;  // that come to a device's experts, all of equal load
  long long expert_feed_forward_cut = 0;
  long long shared_feed_forward_cut = 0;
  long long experts = 0;
  int ring = 1;           // devices that hand on keys and values
  int place_in_ring = 0;  // of this one, by its tokens' place in the sequence
  bool gathers = false;   // sequence parallelism
  bool grouped_heads = false;
  bool drops = false;
  bool runs_scores_again = false;
  bool runs_layers_again = false;
  bool sums_into_buffers = true;  // weight gradients: Megatron-LM; else each layer has its own
  plan::ProductPrecision precision = plan::ProductPrecision::Half;

  /// Bytes of so many numbers as a product keeps them of its input.
  long long cast(long long numbers) const;
  bool is_narrow() const { return cast(64) < 128; }

  /// Of what a device's experts take and give, of what they have inside, and of what the experts
  /// that all tokens share have.
  struct ExpertBytes {
    long long routed, width, shared;
  };
  ExpertBytes expert_bytes() const {
    return {2 * routed_tokens * hidden, 2 * routed_tokens * expert_feed_forward_cut,
            2 * tokens * shared_feed_forward_cut};
  }
};

/// What attention keeps.
struct AttentionKept {
  Tensor input{}, norm{}, statistics{}, mask{};
  Tensor down_queries{}, down_keys_values{}, rank_keys_values{}, norm_queries{}, norm_keys_values{};
  Tensor queries{}, keys{}, values{}, output{}, cast_output{}, score_statistics{};
  Tensor softmax{}, score_mask{}, dropped{};
};

/// What a feed-forward keeps, dense or of experts and those that all tokens share.
struct FeedForwardKept {
  Tensor input{}, norm{}, statistics{}, mask{};
  Tensor up{}, activated{};
  Tensor router{}, router_scores{}, routed{}, expert_up{}, expert_activated{};
};

struct LayerKept {
  AttentionKept attention{};
  FeedForwardKept feed_forward{};
  bool is_sparse = false;
};

class LayerReplay {
 public:
  LayerReplay(Tape& tape, const LayerSizes& sizes) : tape_(tape), sizes_(sizes) {}

  /// The layer's output; takes `input`.
  Tensor forward(Tensor input, LayerKept& kept);
  /// The gradient of the layer's input; takes that of its output. What the weight gradients still
  /// need goes to `owed`, where a second half of the backward computes them.
  Tensor backward(Tensor gradient, LayerKept& kept, std::vector<Tensor>* owed = nullptr);
  /// The second half: takes what is owed.
  void weight_gradients(std::vector<Tensor>& owed);
  /// Of a product's weight with so many outputs and inputs: added to the sum where it stands, and a
  /// stand-in handed to autograd, one for each shape and for good.
  void weight_gradient(long long outputs, long long inputs);

 private:
  Tensor through_layer(Tensor input, LayerKept& kept);
  Tensor attention(Tensor input, AttentionKept& kept);
  void project(AttentionKept& kept);
  void project_latent(AttentionKept& kept);
  void attend(AttentionKept& kept, Tensor& projected);
  void attend_in_ring(AttentionKept& kept, Tensor& projected);
  void add_scores(AttentionKept& kept);
  void cast_output(AttentionKept& kept);
  Tensor feed_forward(Tensor input, FeedForwardKept& kept);
  Tensor experts(Tensor input, FeedForwardKept& kept);
  /// In another order or on another device; lets go of what it was.
  Tensor moved(Tensor& from, long long bytes);
  Tensor add_to_residual(Tensor part, Tensor& mask);
  Tensor product_back(long long outputs_cut, long long inputs_cut);

  Tensor feed_forward_back(Tensor gradient, FeedForwardKept& kept);
  Tensor experts_back(FeedForwardKept& kept);
  Tensor back_in_ring();
  Tensor attention_back(Tensor gradient, AttentionKept& kept);
  Tensor whole_back(AttentionKept& kept, Tensor queries, Tensor keys, Tensor values);
  Tensor latent_back(AttentionKept& kept, Tensor queries, Tensor keys, Tensor values);
  Tensor column_back(Tensor& outputs, long long outputs_cut);
  void drop_all_but_input(LayerKept& kept);
  /// Operands of weight gradients: dropped, or owed to the second half.
  template <class... Tensors>
  void drop_operands(Tensors&... tensors) {
    (drop_operand(tensors), ...);
  }
  void drop_operand(Tensor& tensor);

  Tape& tape_;
  const LayerSizes& sizes_;
  std::vector<Tensor>* owed_ = nullptr;
  std::set<std::pair<long long, long long>> stand_ins_{};
};

}  // namespace pipewright::models::replay
