#pragma once

// A mixture's feed-forward (Mixtral, arXiv 2401.04088): a router chooses the experts of each token,
// and what these make of it is added up by their weights. Tokens are never dropped, so an expert
// multiplies as many as the data send it. Matrices of all experts are one parameter each, of which
// a rank has those of its own experts where several share them out: then tokens go to the experts'
// ranks and come back. Tokens of one pipeline are multiplied by themselves, so that products and
// gradients have the same bits however many ranks there are.

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "feed_forward.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "routing.hpp"

namespace pipewright::engine {

/// A linear layer for each expert: one parameter [experts, outputs, inputs], of which shards share
/// out the outputs (`dimension` 1) or the inputs (2), and ranks along the expert axis the experts.
class ExpertLinearImpl final : public torch::nn::Module {
 public:
  struct Sizes {
    int experts, in, out;
    int dimension;
    bool has_bias;  // of outputs that are shared out: it is added to each group's
  };
  ExpertLinearImpl(const Sizes& sizes, const exec::ShardPlace& place);

  /// Of one expert for one group of this shard; a bias may be undefined.
  struct Matrix {
    at::Tensor weight, bias;
    at::Tensor operator()(const at::Tensor& rows) const;
  };
  /// By group, and by expert of this rank. `source`: of which pipeline the tokens are.
  std::vector<std::vector<Matrix>> of_groups(int source) const;
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;
  void add_aliases(const std::string& name, std::vector<exec::ParameterAlias>& all);

 private:
  exec::ShardPlace place_;
  int dimension_;
  int experts_;
  std::int64_t whole_;
  at::Tensor weight_, bias_;
  exec::Tensors weight_of_source_,
      bias_of_source_;  // for each pipeline but the first, once asked for
};
TORCH_MODULE(ExpertLinear);

/// Shards share out the width of each expert, and all of them have the router.
class MixtureImpl final : public torch::nn::Module {
 public:
  MixtureImpl(const plan::TransformerConfig& config, const exec::ShardPlace& place,
              exec::Tokens tokens);

  /// [batch, tokens, hidden], of this shard's tokens.
  at::Tensor forward(const at::Tensor& input) const;
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;
  std::vector<exec::ParameterAlias> aliases(const std::string& name);

 private:
  /// The experts of tokens, the one with the largest weight first: [batch, tokens, choices].
  struct Choice {
    at::Tensor experts, weights;
  };
  Choice choose(const at::Tensor& input) const;
  Choice by_scores(const at::Tensor& logits) const;
  at::Tensor in_best_groups(const at::Tensor& scores) const;
  /// One of this rank's experts, for one group.
  struct Expert {
    ExpertLinearImpl::Matrix up, gate, down;  // a gate's weight may be undefined
    plan::Activation activation = plan::Activation::Usual;
    at::Tensor operator()(const at::Tensor& rows) const;
  };
  using Experts = std::vector<Expert>;
  std::vector<Experts> experts_of_groups(int source) const;
  static at::Tensor of_experts(const at::Tensor& rows, const std::vector<Counts>& counts,
                               const std::vector<const Experts*>& of_source);
  exec::Tensors rows_of_groups(const exec::Tensors& inputs, const Routing& routing) const;
  at::Tensor bias_of(const Choice& choice) const;

  exec::ShardPlace place_;
  exec::Tokens tokens_;
  int experts_, choices_;
  struct Routes {
    plan::RouterScores scores = plan::RouterScores::Softmax;
    bool sum_to_one = true;
    double scale = 1;
    int groups = 1, groups_of_token = 1;
  };
  Routes routes_;
  plan::Activation activation_;
  GroupLinear router_;
  at::Tensor balance_;  // is added to scores where experts are chosen, and not learnt; or undefined
  ExpertLinear up_{nullptr}, down_{nullptr}, gate_{nullptr};
  GroupLinear down_bias_{nullptr};  // from weights of experts to outputs
  FeedForward shared_{nullptr};
};
TORCH_MODULE(Mixture);

}  // namespace pipewright::engine
