#pragma once

// Optimizers of one stage's parameters, in full or mixed precision, complete or sharded (ZeRO).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/shards.hpp"
#include "pipewright/exec/training/user_optimizer.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::exec {

/// Returns true for parameters that usually have weight decay: not biases and norms, which are
/// small and one-dimensional.
bool is_matrix(const RuledParameter& parameter);

struct OptimizerOptions {
  plan::Optimizer kind = plan::Optimizer::AdamW;
  double learning_rate = 1e-3;  // the peak
  double weight_decay = 0.01;   // of all parameters, unless `rule` sets another
  double beta1 = plan::adam_beta1;
  double beta2 = plan::adam_beta2;
  double epsilon = plan::adam_epsilon;
  double momentum = plan::sgd_momentum;  // for SgdMomentum
  int warm_up_steps = 0;                 // steps of linear warm-up
  plan::Decay decay = plan::Decay::None;
  int decay_steps = 0;  // steps after the warm-up until the lowest rate is reached
  double lowest_learning_rate = 0;
  /// Returns the learning rate of each step, counted from 0, in place of the settings above. Must
  /// be the same on every rank.
  std::function<double(int step)> rate_at{};
  /// Gradients are accumulated in float32 whatever the parameters' type, and the optimizer uses
  /// them in float32.
  bool fp32_gradients = false;
  /// Parameter groups: returns the rule of each parameter. Must be the same on every rank. Empty:
  /// all have the same weight decay.
  std::function<ParameterRule(const RuledParameter&)> rule{};
  /// A user's optimizer in place of `kind`, such as `torch_optimizer<torch::optim::Adagrad>`.
  MakeOptimizer own{};
  std::string own_name = "own";  // for checkpoints, which load only under the same name
};

/// Returns the optimizer's name in checkpoints.
std::string name_of(const OptimizerOptions& options);

/// Returns the learning rate of a step, counted from 0.
double learning_rate_at(const OptimizerOptions& options, int step);

/// The shard of the optimizer states that a rank holds and updates: ZeRO stage 1.
struct Shard {
  int index = 0;
  int count = 1;
  bool gradients = false;   // ZeRO stage 2: gradients are sharded, too; parameters have no `.grad`
  bool parameters = false;  // ZeRO stage 3: parameters, too; updates go to a copy of the shard
  ReplicaIndex of_experts{};  // in place of index and count for experts, under expert parallelism
};

/// PositionsFixed: each number of a parameter has the same position in its tensor under every plan,
/// as seen by kernels. MayDiffer: tensor parallelism may change positions. Kernels round the
/// numbers after the last whole SIMD vector differently from those in vectors, so with MayDiffer
/// all numbers are put into whole vectors.
enum class Places { PositionsFixed, MayDiffer };

/// How an update uses gradients. Both are zero-dimensional tensors on the parameters' device, so
/// that no thread blocks for their values; undefined means no effect.
struct GradientUse {
  at::Tensor scale;     // factor of the gradients
  at::Tensor overflow;  // float32; 1: a gradient is not finite, so only gradients change
};

/// The optimizer of a stage. With gradient g at update t, AdamW (Loshchilov & Hutter, ICLR 2019)
/// computes
///   m = β₁m + (1−β₁)g,  v = β₂v + (1−β₂)g²,
///   w = w − η·λ·w − η · (m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε),
/// SGD w = w − η·(g + λw), and with momentum v = μv + (g + λw), w = w − ηv. Parameters in 16 bits
/// have a master copy in float32, which is updated.
class Optimizer {
 public:
  /// One tensor that the optimizer keeps for a parameter, or for this rank's slice of the
  /// parameter.
  struct State {
    std::size_t parameter = 0;
    std::string name;  // exp_avg, exp_avg_sq, step, momentum, master
    at::Tensor value;
    std::int64_t begin = 0;   // where the slice begins, in elements
    std::int64_t whole = -1;  // elements of the whole tensor; -1: `value` is all of it
  };

  /// Allocates the states, and zeroed gradients for parameters without one, so that backwards only
  /// add to them. With sharded gradients, allocates this rank's slices only. `of_experts`: as in
  /// CopiedParameters. `rules`: one for each parameter; empty: the options' weight decay for all.
  /// `named`: the description of each parameter for a user's optimizer; may be empty. Throws
  /// InputError if a parameter to be sliced is not contiguous, or if the states of a user's
  /// optimizer do not fit their parameters.
  Optimizer(std::vector<at::Tensor> parameters, const OptimizerOptions& options, Shard shard = {},
            Places places = Places::PositionsFixed, std::vector<bool> of_experts = {},
            const std::vector<ParameterRule>& rules = {}, std::vector<RuledParameter> named = {});

  /// Updates all parameters and zeroes the gradients.
  void step(double learning_rate, const GradientUse& use = {}) {
    step(0, parameters_.size(), learning_rate, use);
  }
  /// Updates only parameters [first, last). A user's optimizer updates all parameters when `last`
  /// is the end.
  void step(std::size_t first, std::size_t last, double learning_rate, const GradientUse& use = {});
  /// Moves parameters to new memory. Call before a `step` that must not change the old memory,
  /// which microbatches in flight still use.
  void leave_weights(std::size_t first, std::size_t last);

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const CopiedParameters& copied() const { return copied_; }
  /// Returns true if other replicas have slices of the parameter.
  bool is_divided(std::size_t parameter) const {
    return (copied_.is_of_experts(parameter) ? shard_.of_experts.count : shard_.count) > 1;
  }
  /// Returns a shard's slices, as views of the parameters, of the parameters with such replicas, in
  /// order.
  Tensors slices(int shard, CopiesOf copies = CopiesOf::Rest) const;
  /// Returns the tensors that `step` updates: this rank's slices of the parameters, or with sharded
  /// parameters the copies of those.
  Tensors own_slices() const;
  /// Returns those of the parameters with such replicas.
  Tensors own_slices(CopiesOf copies) const;
  std::vector<std::size_t> own_places(CopiesOf copies) const;
  /// Returns the sharded gradients that `step` uses, one for each slice.
  const Tensors& gradients() const { return gradients_; }
  /// Returns the gradients that a step will use, before scaling, in the form of `states` with empty
  /// names.
  std::vector<State> gradient_slices() const;
  const std::vector<RuledParameter>& named() const { return named_; }
  /// Returns the optimizer's states. Changing a value changes the optimizer.
  std::vector<State> states() const;
  /// Call after states were set from outside.
  void states_were_set();
  /// Call after a parameter was set from outside: copies it to the rank's shard and to master
  /// copies.
  void refresh_masters();

 private:
  std::size_t slice_at(std::size_t parameter) const;
  at::Tensor updated_part(std::size_t slice) const;
  at::Tensor gradient_of(std::size_t slice) const;
  State state_of(std::size_t slice, std::string name, at::Tensor value) const;
  void write_back(std::size_t first_slice, std::size_t end);
  void zero_gradients(std::size_t first, std::size_t last);
  void make_own();
  std::vector<State> own_states() const;
  void step_own(double learning_rate, const GradientUse& use);
  /// Tensors that an update reads and writes for some slices. Each list is empty or has one entry
  /// for each gradient.
  struct Updated {
    Tensors values, gradients, first_moments, second_moments, step_counts;
  };
  void update(const Tensors& gradients, std::size_t begin, double learning_rate,
              const at::Tensor& overflow);
  void update_in_vectors(const Updated& all, const ParameterRule& rule, double learning_rate,
                         const at::Tensor& overflow) const;
  void update(const Updated& all, const ParameterRule& rule, double learning_rate,
              const at::Tensor& overflow) const;

  OptimizerOptions options_;
  Shard shard_;
  Places places_;
  std::vector<at::Tensor> parameters_;
  CopiedParameters copied_;
  std::vector<Slice> own_;
  std::vector<ParameterRule> rules_;  // by slice
  Tensors updated_;                   // slices of the parameters, or master copies
  Tensors gradients_;                 // of the slices, if gradients are sharded
  Tensors values_;                    // of the slices, if parameters are sharded
  Tensors first_moments_, second_moments_, step_counts_;
  bool has_masters_ = false;
  std::vector<RuledParameter> named_;  // by parameter
  Tensors seen_;                       // by slice; the tensors that a user's optimizer updates
  std::unique_ptr<UserOptimizer> own_optimizer_;
};

}  // namespace pipewright::exec
