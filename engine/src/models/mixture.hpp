#pragma once

// A mixture-of-experts feed-forward (Mixtral, arXiv 2401.04088): a router chooses the experts of
// each token, and their outputs are summed with the router's weights. Tokens are never dropped, so
// the number of tokens per expert depends on the data. The matrices of all experts form one
// parameter each. Under expert parallelism a rank holds those of its own experts, and an all-to-all
// sends tokens to the experts' ranks and back. Tokens of each data-parallel replica are multiplied
// separately, so that products and gradients have the same bits for any number of ranks.

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "feed_forward.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "routing.hpp"

namespace pipewright::engine {

/// A linear layer per expert, as one parameter [experts, outputs, inputs]. Tensor-parallel ranks
/// partition the outputs (`dimension` 1) or the inputs (2), and ranks along the expert axis
/// partition the experts.
class ExpertLinearImpl final : public torch::nn::Module {
 public:
  struct Sizes {
    int experts, in, out;
    int dimension;
    bool has_bias;  // only for partitioned outputs: added to each group's
  };
  ExpertLinearImpl(const Sizes& sizes, const exec::TensorParallelPlace& place);

  /// The matrix of one expert for one local group. The bias may be undefined.
  struct Matrix {
    at::Tensor weight, bias;
    at::Tensor operator()(const at::Tensor& rows) const;
  };
  /// Returns the matrices by group and by local expert. `source`: the replica that the tokens come
  /// from.
  std::vector<std::vector<Matrix>> of_groups(int source) const;
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;
  void add_aliases(const std::string& name, std::vector<exec::ParameterAlias>& all);

 private:
  exec::TensorParallelPlace place_;
  int dimension_;
  int experts_;
  std::int64_t whole_;
  at::Tensor weight_, bias_;
  exec::Tensors weight_of_source_,
      bias_of_source_;  // for each replica but the first; created when aliases are added
};
TORCH_MODULE(ExpertLinear);

/// A mixture whose experts' widths are partitioned among tensor-parallel ranks; the router is
/// replicated.
class MixtureImpl final : public torch::nn::Module {
 public:
  MixtureImpl(const plan::TransformerConfig& config, const exec::TensorParallelPlace& place,
              exec::Tokens tokens);

  /// Takes and returns [batch, tokens, hidden] of this rank's tokens.
  at::Tensor forward(const at::Tensor& input) const;
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;
  std::vector<exec::ParameterAlias> aliases(const std::string& name);

 private:
  /// Experts and weights of each token, the largest weight first: [batch, tokens, choices].
  struct Choice {
    at::Tensor experts, weights;
  };
  Choice choose(const at::Tensor& input) const;
  Choice by_scores(const at::Tensor& logits) const;
  at::Tensor in_best_groups(const at::Tensor& scores) const;
  /// One of this rank's experts, for one group.
  struct Expert {
    ExpertLinearImpl::Matrix up, gate, down;  // the gate's weight may be undefined
    plan::Activation activation = plan::Activation::Usual;
    at::Tensor operator()(const at::Tensor& rows) const;
  };
  using Experts = std::vector<Expert>;
  std::vector<Experts> experts_of_groups(int source) const;
  static at::Tensor of_experts(const at::Tensor& rows, const std::vector<Counts>& counts,
                               const std::vector<const Experts*>& of_source);
  exec::Tensors rows_of_groups(const exec::Tensors& inputs, const Routing& routing) const;
  at::Tensor bias_of(const Choice& choice) const;

  exec::TensorParallelPlace place_;
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
  at::Tensor balance_;  // added to scores for choosing experts only, not trained; may be undefined
  ExpertLinear up_{nullptr}, down_{nullptr}, gate_{nullptr};
  GroupLinear down_bias_{nullptr};  // maps the experts' weights to outputs
  FeedForward shared_{nullptr};
};
TORCH_MODULE(Mixture);

}  // namespace pipewright::engine
