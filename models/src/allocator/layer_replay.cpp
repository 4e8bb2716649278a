#include "layer_replay.hpp"

#include <algorithm>
#include <utility>

namespace pipewright::models::replay {

LayerSizes::LayerSizes(const plan::TransformerTraining& training, const plan::Cut& cut, int copy) {
  const plan::TransformerConfig& model = training.model;
  const long long shards = cut.tensor;
  gathers = cut.sequence_parallel && cut.tensor > 1;
  hidden = model.hidden;
  tokens = 1LL * cut.microbatch * training.sequence / cut.context;
  tokens_cut = gathers ? tokens / shards : tokens;
  state = 2 * tokens_cut * hidden;
  whole_state = 2 * tokens * hidden;
  heads_cut = model.heads / shards;
  rope = model.is_latent() ? model.rope_channels : 0;
  queries_cut = heads_cut * (model.head_channels + rope);
  keys_cut = model.is_latent() ? queries_cut : 1LL * model.kv_heads * model.head_channels / shards;
  values_cut = heads_cut * model.head_channels;
  if (training.attention == plan::AttentionKind::Scores)
    scores_cut = tokens * training.sequence * heads_cut;
  q_rank = model.q_rank, kv_rank = model.kv_rank;
  up_keys_values_cut = 2 * heads_cut * model.head_channels;
  feed_forward_cut = model.feed_forward / shards;
  gates = model.gated ? 2 : 1;
  routed_tokens = tokens_cut * model.experts_per_token * cut.expert_cut();
  expert_feed_forward_cut = model.expert_feed_forward / cut.expert_cut();
  shared_feed_forward_cut = model.shared_feed_forward / shards;
  experts = model.experts;
  ring = cut.context;
  place_in_ring = copy % cut.context;
  grouped_heads = !model.is_latent() && model.kv_heads < model.heads;
  drops = model.dropout;
  runs_scores_again = cut.recompute == plan::RecomputeMode::Selective;
  runs_layers_again = cut.recompute == plan::RecomputeMode::Full;
  sums_into_buffers = cut.zero < 2;
  precision = training.precision;
}

/// A number of 4 bits has a scale of 8 bits for each 16 of them.
long long LayerSizes::cast(long long numbers) const {
  switch (precision) {
    case plan::ProductPrecision::Float8:
      return numbers;
    case plan::ProductPrecision::Float4:
      return numbers / 2 + numbers / 16;
    case plan::ProductPrecision::Single:
    case plan::ProductPrecision::Half:
      break;
  }
  return 2 * numbers;
}

void LayerReplay::weight_gradient(long long outputs, long long inputs) {
  if (sizes_.sums_into_buffers && stand_ins_.emplace(outputs, inputs).second)
    tape_.make(2 * outputs * inputs);
}

Tensor LayerReplay::forward(Tensor input, LayerKept& kept) {
  Tensor output = through_layer(input, kept);
  if (sizes_.runs_layers_again)
    drop_all_but_input(kept);
  return output;
}

Tensor LayerReplay::backward(Tensor gradient, LayerKept& kept, std::vector<Tensor>* owed) {
  owed_ = owed;
  if (sizes_.runs_layers_again) {
    Tensor output = through_layer(kept.attention.input, kept);
    tape_.drop(output);
  }
  return attention_back(feed_forward_back(gradient, kept.feed_forward), kept.attention);
}

void LayerReplay::weight_gradients(std::vector<Tensor>& owed) {
  if (sizes_.gathers)
    tape_.touch(sizes_.whole_state);
  for (Tensor& tensor : owed)
    tape_.drop(tensor);
  owed.clear();
}

void LayerReplay::drop_operand(Tensor& tensor) {
  if (owed_ == nullptr)
    tape_.drop(tensor);
  else if (tensor != nullptr)
    owed_->push_back(std::exchange(tensor, nullptr));
}

Tensor LayerReplay::through_layer(Tensor input, LayerKept& kept) {
  Tensor between = attention(input, kept.attention);
  return kept.is_sparse ? experts(between, kept.feed_forward)
                        : feed_forward(between, kept.feed_forward);
}

/// Returns the output of a part, reduced over tensor-parallel ranks, plus the part's input.
Tensor LayerReplay::add_to_residual(Tensor part, Tensor& mask) {
  if (sizes_.gathers) {
    Tensor scattered = tape_.make(sizes_.state);
    tape_.drop(part);
    part = scattered;
  }
  if (sizes_.drops)
    mask = tape_.make(sizes_.state / 2);
  Tensor sum = tape_.make(sizes_.state);
  tape_.drop(part);
  return sum;
}

Tensor LayerReplay::attention(Tensor input, AttentionKept& kept) {
  kept.input = input;
  kept.norm = tape_.make(sizes_.cast(sizes_.tokens_cut * sizes_.hidden));
  kept.statistics = tape_.make(4 * sizes_.tokens_cut);
  if (sizes_.kv_rank > 0)
    project_latent(kept);
  else
    project(kept);
  return add_to_residual(tape_.make(sizes_.whole_state), kept.mask);
}

/// Computes queries, keys and values in one product. Grouped queries are copied into the order of
/// heads, rotary embeddings create new queries and keys, and the kernel needs contiguous values.
void LayerReplay::project(AttentionKept& kept) {
  const long long tokens = sizes_.tokens;
  Tensor gathered = tape_.make(sizes_.gathers ? sizes_.whole_state : 0);
  Tensor projected = tape_.make(2 * tokens * (sizes_.queries_cut + 2 * sizes_.keys_cut));
  tape_.drop(gathered);
  Tensor in_order = tape_.make(sizes_.grouped_heads ? 2 * tokens * sizes_.queries_cut : 0);
  kept.queries = tape_.make(2 * tokens * sizes_.queries_cut);
  kept.keys = tape_.make(2 * tokens * sizes_.keys_cut);
  tape_.drop(in_order);
  kept.values = tape_.make(2 * tokens * sizes_.keys_cut);
  attend(kept, projected);
}

/// Projects down to the ranks and up to all heads (arXiv 2405.04434, 2.1), then adds the rotary
/// channels to queries and keys. Queries without a rank are projected from the gathered input.
void LayerReplay::project_latent(AttentionKept& kept) {
  const long long tokens = sizes_.tokens, part = sizes_.tokens_cut;
  kept.down_queries = tape_.make(2 * part * sizes_.q_rank);
  kept.down_keys_values = tape_.make(2 * part * (sizes_.kv_rank + sizes_.rope));
  kept.rank_keys_values = tape_.make(2 * part * sizes_.kv_rank);
  kept.norm_queries = tape_.make(sizes_.cast(part * sizes_.q_rank));
  Tensor gathered = tape_.make(sizes_.gathers && sizes_.q_rank == 0 ? sizes_.whole_state : 0);
  Tensor queries = tape_.make(2 * tokens * sizes_.queries_cut);
  tape_.drop(gathered);
  kept.norm_keys_values = tape_.make(sizes_.cast(part * sizes_.kv_rank));
  Tensor projected = tape_.make(2 * tokens * sizes_.up_keys_values_cut);
  Tensor rotated = tape_.make(2 * tokens * sizes_.heads_cut * sizes_.rope);
  kept.queries = tape_.make(2 * tokens * sizes_.queries_cut);
  tape_.drop(queries, rotated);
  kept.keys = tape_.make(2 * tokens * sizes_.keys_cut);
  kept.values = tape_.make(2 * tokens * sizes_.values_cut);
  attend(kept, projected);
}

void LayerReplay::attend(AttentionKept& kept, Tensor& projected) {
  if (sizes_.ring > 1 && sizes_.kv_rank == 0)
    return attend_in_ring(kept, projected);
  add_scores(kept);
  kept.output = tape_.make(2 * sizes_.tokens * sizes_.values_cut);
  kept.score_statistics =
      tape_.make(sizes_.scores_cut > 0 ? 0 : 4 * sizes_.tokens * sizes_.heads_cut);
  tape_.drop(projected);
  cast_output(kept);
  if (sizes_.runs_scores_again)
    tape_.drop(kept.softmax, kept.score_mask, kept.dropped);
}

/// Allocates the scores: 5 a s² b (Korthikanti et al., arXiv 2205.05198, 4.1).
void LayerReplay::add_scores(AttentionKept& kept) {
  Tensor scores = tape_.make(2 * sizes_.scores_cut);
  kept.softmax = tape_.make(2 * sizes_.scores_cut);
  tape_.drop(scores);
  if (!sizes_.drops)
    return;
  kept.score_mask = tape_.make(sizes_.scores_cut);
  kept.dropped = tape_.make(2 * sizes_.scores_cut);
}

/// Computes ring attention. Received keys and values and the result of each turn use two streams
/// alternately and are kept until the last turn. Tokens that come later in the sequence are visible
/// only to the second half of the device's own. The last keys and values received are saved in
/// place of the device's own.
void LayerReplay::attend_in_ring(AttentionKept& kept, Tensor& projected) {
  const long long tokens = sizes_.tokens, sent = 4 * tokens * sizes_.keys_cut;
  std::vector<Tensor> came{tape_.make(sent)}, gave;
  for (int turn = 0; turn < sizes_.ring; ++turn) {
    const int stream = turn % 2;
    if (turn + 1 < sizes_.ring)
      came.push_back(tape_.make(sent, stream));
    const long long seeing = turn > sizes_.place_in_ring ? tokens / 2 : tokens;
    gave.push_back(tape_.make(2 * seeing * sizes_.values_cut, stream));
    gave.push_back(tape_.make(4 * seeing * sizes_.heads_cut, stream));
    if (turn == 0)
      kept.score_statistics = tape_.make(4 * tokens * sizes_.heads_cut);
  }
  kept.output = tape_.make(2 * tokens * sizes_.values_cut);
  for (Tensor& tensor : gave)
    tape_.drop(tensor);
  tape_.drop(kept.keys, kept.values);
  kept.keys = came.back();
  came.pop_back();
  for (Tensor& tensor : came)
    tape_.drop(tensor);
  tape_.drop(projected);
  cast_output(kept);
}

/// Casts the input of the last product, which saves it. Fused attention saves its own output as
/// well.
void LayerReplay::cast_output(AttentionKept& kept) {
  if (!sizes_.is_narrow())
    return;
  kept.cast_output = tape_.make(sizes_.cast(sizes_.tokens * sizes_.values_cut));
  if (sizes_.scores_cut > 0)
    tape_.drop(kept.output);
}

Tensor LayerReplay::feed_forward(Tensor input, FeedForwardKept& kept) {
  const long long width = sizes_.tokens * sizes_.feed_forward_cut;
  kept.input = input;
  kept.norm = tape_.make(sizes_.cast(sizes_.tokens_cut * sizes_.hidden));
  kept.statistics = tape_.make(4 * sizes_.tokens_cut);
  Tensor gathered = tape_.make(sizes_.gathers ? sizes_.whole_state : 0);
  kept.up = tape_.make(2 * width * sizes_.gates);
  tape_.drop(gathered);
  kept.activated = tape_.make(sizes_.cast(width));
  return add_to_residual(tape_.make(sizes_.whole_state), kept.mask);
}

Tensor LayerReplay::moved(Tensor& from, long long bytes) {
  Tensor to = tape_.make(bytes);
  tape_.drop(from);
  return to;
}

/// Sorts tokens by expert, exchanges them, sorts them by local expert, and reverses all of it. The
/// shared experts process all tokens in addition.
Tensor LayerReplay::experts(Tensor input, FeedForwardKept& kept) {
  const auto [routed, width, shared] = sizes_.expert_bytes();
  kept.input = input;
  kept.norm = tape_.make(sizes_.cast(sizes_.tokens_cut * sizes_.hidden));
  kept.router = tape_.make(4 * sizes_.tokens_cut * sizes_.experts);
  kept.router_scores = tape_.make(4 * sizes_.tokens_cut * sizes_.experts);
  Tensor permuted = tape_.make(routed);
  kept.up = tape_.make(shared * sizes_.gates);
  kept.activated = tape_.make(sizes_.cast(shared / 2));
  Tensor shared_output = tape_.make(shared > 0 ? sizes_.state : 0);
  Tensor exchanged = moved(permuted, routed);
  kept.routed = moved(exchanged, sizes_.cast(routed / 2));
  kept.expert_up = tape_.make(width * sizes_.gates);
  kept.expert_activated = tape_.make(sizes_.cast(width / 2));
  Tensor output = tape_.make(routed);
  Tensor in_order = moved(output, routed);
  Tensor back = moved(in_order, routed);
  Tensor combined = moved(back, sizes_.state);
  Tensor all = tape_.make(sizes_.state);
  tape_.drop(combined, shared_output);
  Tensor sum = tape_.make(sizes_.state);
  tape_.drop(all);
  return sum;
}

/// Returns the input gradient of a row-parallel product.
Tensor LayerReplay::product_back(long long outputs_cut, long long inputs_cut) {
  Tensor gathered = tape_.make(sizes_.gathers ? sizes_.whole_state : 0);
  Tensor gradient = tape_.make(2 * sizes_.tokens * inputs_cut);
  weight_gradient(outputs_cut, inputs_cut);
  tape_.drop(gathered);
  return gradient;
}

/// Returns the input gradient of a column-parallel product; frees the output gradients.
Tensor LayerReplay::column_back(Tensor& outputs, long long outputs_cut) {
  Tensor gathered = tape_.make(sizes_.gathers ? sizes_.whole_state : 0);
  Tensor gradient = tape_.make(sizes_.whole_state);
  Tensor scattered = tape_.make(sizes_.gathers ? sizes_.state : 0);
  weight_gradient(outputs_cut, sizes_.hidden);
  tape_.drop(gathered);
  if (sizes_.gathers) {
    tape_.drop(gradient);
    gradient = scattered;
  }
  drop_operands(outputs);
  return gradient;
}

Tensor LayerReplay::feed_forward_back(Tensor gradient, FeedForwardKept& kept) {
  const long long width = sizes_.tokens * sizes_.feed_forward_cut;
  tape_.drop(kept.mask);
  Tensor of_norm{};
  if (kept.routed != nullptr) {
    of_norm = experts_back(kept);
  } else {
    Tensor activated = product_back(sizes_.hidden, sizes_.feed_forward_cut);
    drop_operands(kept.activated);
    Tensor up = tape_.make(2 * width * sizes_.gates);
    tape_.drop(activated, kept.up);
    of_norm = column_back(up, sizes_.gates * sizes_.feed_forward_cut);
  }
  Tensor of_input = tape_.make(sizes_.state);
  drop_operands(kept.norm);
  tape_.drop(of_norm, kept.statistics, kept.input);
  Tensor sum = tape_.make(sizes_.state);
  tape_.drop(of_input);
  drop_operands(gradient);
  return sum;
}

Tensor LayerReplay::experts_back(FeedForwardKept& kept) {
  const auto [routed, width, shared] = sizes_.expert_bytes();
  Tensor permuted = tape_.make(routed);
  Tensor exchanged = moved(permuted, routed);
  Tensor in_order = moved(exchanged, routed);
  Tensor activated = tape_.make(width);
  weight_gradient(sizes_.hidden, sizes_.expert_feed_forward_cut);
  drop_operands(in_order, kept.expert_activated);
  Tensor up = moved(activated, width * sizes_.gates);
  tape_.drop(kept.expert_up);
  Tensor of_tokens = tape_.make(routed);
  weight_gradient(sizes_.gates * sizes_.expert_feed_forward_cut, sizes_.hidden);
  drop_operands(up, kept.routed);
  Tensor out_of_order = moved(of_tokens, routed);
  Tensor back = moved(out_of_order, routed);
  Tensor of_shared{};
  if (shared > 0) {
    Tensor shared_activated = product_back(sizes_.hidden, sizes_.shared_feed_forward_cut);
    drop_operands(kept.activated);
    Tensor shared_up = moved(shared_activated, shared * sizes_.gates);
    tape_.drop(kept.up);
    of_shared = column_back(shared_up, sizes_.gates * sizes_.shared_feed_forward_cut);
  }
  Tensor unpermuted = moved(back, sizes_.state);
  Tensor both = tape_.make(sizes_.state);
  tape_.drop(unpermuted, of_shared);
  Tensor of_router = tape_.make(sizes_.state);
  Tensor sum = tape_.make(sizes_.state);
  tape_.drop(of_router, both, kept.router, kept.router_scores);
  return sum;
}

Tensor LayerReplay::attention_back(Tensor gradient, AttentionKept& kept) {
  const long long tokens = sizes_.tokens;
  tape_.drop(kept.mask);
  if (sizes_.runs_scores_again)
    add_scores(kept);
  Tensor output = product_back(sizes_.hidden, sizes_.values_cut);
  Tensor scores = tape_.make(2 * sizes_.scores_cut);
  tape_.touch(2 * sizes_.scores_cut);
  tape_.drop(scores, kept.softmax, kept.score_mask, kept.dropped);
  const bool latent = sizes_.kv_rank > 0;
  Tensor queries = tape_.make(2 * tokens * sizes_.queries_cut);
  Tensor keys{}, values{};
  if (sizes_.ring > 1 && !latent)
    keys = back_in_ring();
  else {
    keys = tape_.make(2 * tokens * sizes_.keys_cut);
    values = tape_.make(2 * tokens * (latent ? sizes_.values_cut : sizes_.keys_cut));
  }
  drop_operands(sizes_.is_narrow() ? kept.cast_output : kept.output);
  tape_.drop(output, kept.queries, kept.keys, kept.values, kept.output, kept.score_statistics);
  Tensor of_norm =
      latent ? latent_back(kept, queries, keys, values) : whole_back(kept, queries, keys, values);
  Tensor of_input = tape_.make(sizes_.state);
  drop_operands(kept.norm);
  tape_.drop(of_norm, kept.statistics, kept.input);
  Tensor sum = tape_.make(sizes_.state);
  tape_.drop(of_input);
  drop_operands(gradient);
  return sum;
}

/// Allocates two buffers of keys, values and their gradients, one of which holds the result, and
/// the kernel's outputs of each turn.
Tensor LayerReplay::back_in_ring() {
  const long long tokens = sizes_.tokens, both = 4 * tokens * sizes_.keys_cut;
  Tensor sent = tape_.make(2 * both);
  Tensor came = tape_.make(2 * both);
  for (int turn = 0; turn < sizes_.ring; ++turn) {
    Tensor of_queries = tape_.make(2 * tokens * sizes_.queries_cut);
    Tensor of_keys = tape_.make(both / 2);
    Tensor of_values = tape_.make(both / 2);
    Tensor joined = tape_.make(both);
    tape_.drop(of_queries, of_keys, of_values, joined);
  }
  tape_.drop(sent);
  return came;
}

/// Rotates queries and keys back and joins all three for their single product.
Tensor LayerReplay::whole_back(AttentionKept&, Tensor queries, Tensor keys, Tensor values) {
  const long long tokens = sizes_.tokens, all = sizes_.queries_cut + 2 * sizes_.keys_cut;
  Tensor back_queries = tape_.make(2 * tokens * sizes_.queries_cut);
  Tensor back_keys = tape_.make(2 * tokens * sizes_.keys_cut);
  tape_.drop(queries, keys);
  Tensor joined = tape_.make(2 * tokens * all);
  tape_.drop(back_queries, back_keys, values);
  return column_back(joined, all);
}

Tensor LayerReplay::latent_back(AttentionKept& kept, Tensor queries, Tensor keys, Tensor values) {
  const long long tokens = sizes_.tokens, part = sizes_.tokens_cut;
  Tensor keys_values = tape_.make(2 * tokens * sizes_.up_keys_values_cut);
  Tensor rotated = tape_.make(2 * tokens * sizes_.queries_cut);
  tape_.drop(keys, values, queries);
  const auto up_back = [&](Tensor& outputs, long long outputs_cut, long long rank) {
    Tensor of_norm = tape_.make(2 * part * rank);
    weight_gradient(outputs_cut, rank);
    drop_operands(outputs);
    Tensor of_input = tape_.make(2 * part * rank);
    tape_.drop(of_norm);
    return of_input;
  };
  Tensor rank_keys = up_back(keys_values, sizes_.up_keys_values_cut, sizes_.kv_rank);
  drop_operands(kept.norm_keys_values);
  const bool has_rank = sizes_.q_rank > 0;
  Tensor rank_queries =
      up_back(rotated, sizes_.queries_cut, has_rank ? sizes_.q_rank : sizes_.hidden);
  drop_operands(kept.norm_queries);
  Tensor with_rope = tape_.make(2 * part * (sizes_.kv_rank + sizes_.rope));
  tape_.drop(rank_keys, kept.rank_keys_values, kept.down_keys_values, kept.down_queries);
  const auto down_back = [&](Tensor& outputs, long long rank) {
    Tensor of_input = tape_.make(sizes_.state);
    weight_gradient(rank, sizes_.hidden);
    drop_operands(outputs);
    return of_input;
  };
  Tensor by_keys = down_back(with_rope, sizes_.kv_rank + sizes_.rope);
  Tensor by_queries{};
  if (has_rank)
    by_queries = down_back(rank_queries, sizes_.q_rank);
  Tensor sum = tape_.make(sizes_.state);
  tape_.drop(by_keys, by_queries, rank_queries);
  return sum;
}

void LayerReplay::drop_all_but_input(LayerKept& kept) {
  AttentionKept& a = kept.attention;
  FeedForwardKept& f = kept.feed_forward;
  tape_.drop(a.norm, a.statistics, a.mask, a.down_queries, a.down_keys_values, a.rank_keys_values,
             a.norm_queries, a.norm_keys_values, a.queries, a.keys, a.values, a.output,
             a.cast_output, a.score_statistics, a.softmax, a.score_mask, a.dropped);
  tape_.drop(f.input, f.norm, f.statistics, f.mask, f.up, f.activated, f.router, f.router_scores,
             f.routed, f.expert_up, f.expert_activated);
}

}  // namespace pipewright::models::replay
