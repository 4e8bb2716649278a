#pragma once

// The tensors of a transformer layer, forward and backward, in the order in which Megatron-LM's
// TransformerEngine layers allocate and free them: saved activations and temporary tensors.

#include <set>
#include <vector>

#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "tape.hpp"

namespace pipewright::models::replay {

/// Sizes of a rank's layers, in elements. A field that ends in `_cut` is one device's part.
struct LayerSizes {
  LayerSizes(const plan::TransformerTraining& training, const plan::Cut& cut, int copy);

  long long hidden = 0;
  long long tokens = 0;       // per microbatch, before sequence parallelism divides them
  long long tokens_cut = 0;   // after sequence parallelism divides them
  long long state = 0;        // bytes of a hidden state, this device's part
  long long whole_state = 0;  // bytes of a whole hidden state
  long long heads_cut = 0;    // query heads
  long long queries_cut = 0;  // channels of the queries
  long long keys_cut = 0;     // channels of the keys
  long long values_cut = 0;   // channels of the heads' outputs
  long long scores_cut = 0;   // elements of all heads' scores, if they are materialized
  long long q_rank = 0, kv_rank = 0, rope = 0;
  long long up_keys_values_cut = 0;  // channels of latent keys and values of all heads
  long long feed_forward_cut = 0;
  long long gates = 1;          // number of matrices applied to the hidden state
  long long routed_tokens = 0;  // tokens received by a device's experts, under equal load
  long long expert_feed_forward_cut = 0;
  long long shared_feed_forward_cut = 0;
  long long experts = 0;
  int ring = 1;           // number of devices that pass keys and values around (ring attention)
  int place_in_ring = 0;  // this device's position, by its tokens' place in the sequence
  bool gathers = false;   // sequence parallelism: tokens are gathered
  bool grouped_heads = false;
  bool drops = false;
  bool runs_scores_again = false;
  bool runs_layers_again = false;
  bool sums_into_buffers = true;  // weight gradients accumulate in buffers, as in Megatron-LM;
                                  // otherwise per layer
  plan::ProductPrecision precision = plan::ProductPrecision::Half;

  /// Returns the bytes of this many elements as a product saves them of its input.
  long long cast(long long numbers) const;
  bool is_narrow() const { return cast(64) < 128; }

  /// Bytes of a device's routed inputs and outputs, of its experts' inner activations, and of the
  /// inner activations of shared experts.
  struct ExpertBytes {
    long long routed, width, shared;
  };
  ExpertBytes expert_bytes() const {
    return {2 * routed_tokens * hidden, 2 * routed_tokens * expert_feed_forward_cut,
            2 * tokens * shared_feed_forward_cut};
  }
};

/// Saved tensors of attention.
struct AttentionKept {
  Tensor input{}, norm{}, statistics{}, mask{};
  Tensor down_queries{}, down_keys_values{}, rank_keys_values{}, norm_queries{}, norm_keys_values{};
  Tensor queries{}, keys{}, values{}, output{}, cast_output{}, score_statistics{};
  Tensor softmax{}, score_mask{}, dropped{};
};

/// Saved tensors of a feed-forward, dense or of routed and shared experts.
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

  /// Returns the layer's output; frees or saves `input`.
  Tensor forward(Tensor input, LayerKept& kept);
  /// Returns the gradient of the layer's input; frees the gradient of its output. Tensors that the
  /// weight gradients still need are moved to `owed` if a second half of the backward computes
  /// them.
  Tensor backward(Tensor gradient, LayerKept& kept, std::vector<Tensor>* owed = nullptr);
  /// Runs the second half of the backward; frees the tensors in `owed`.
  void weight_gradients(std::vector<Tensor>& owed);
  /// Accumulates a weight gradient of this shape in place. Autograd gets a placeholder, which is
  /// allocated once per shape and never freed.
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
  /// Copies a tensor to another order or another device, and frees the original.
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
  /// Frees operands of weight gradients, or passes them to the second half.
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
