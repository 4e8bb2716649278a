#pragma once

// Optimizers over one stage's parameters, in full or mixed precision, whole or a shard of them.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/own_optimizer.hpp"
#include "pipewright/exec/training/shards.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::exec {

/// Whether a weight decay is usual for it: not for biases and norms, which are small and of one
/// dimension.
bool is_matrix(const RuledParameter& parameter);

struct OptimizerOptions {
  plan::Optimizer kind = plan::Optimizer::AdamW;
  double learning_rate = 1e-3;  // the highest
  double weight_decay = 0.01;   // of all parameters, but where `rule` says else
  double beta1 = plan::adam_beta1;
  double beta2 = plan::adam_beta2;
  double epsilon = plan::adam_epsilon;
  double momentum = plan::sgd_momentum;  // of SgdMomentum
  int warm_up_steps = 0;                 // the rate rises linearly over so many
  plan::Decay decay = plan::Decay::None;
  int decay_steps = 0;  // after the warm-up, until the lowest rate is reached
  double lowest_learning_rate = 0;
  /// The rate of each step, counted from 0, in place of all of these; the same on every rank.
  std::function<double(int step)> rate_at{};
  /// Gradients are added up in float32, whatever the parameters' type, and so are stepped with.
  bool fp32_gradients = false;
  /// Parameter groups: what holds for each parameter. The same on every rank. Empty: all decay
  /// alike.
  std::function<ParameterRule(const RuledParameter&)> rule{};
  /// An optimizer of one's own in place of `kind`, such as
  /// `torch_optimizer<torch::optim::Adagrad>`.
  MakeOptimizer own{};
  std::string own_name = "own";  // for checkpoints, which load under the same name alone
};

/// As checkpoints call it.
std::string name_of(const OptimizerOptions& options);

/// The rate of a step, counted from 0.
double learning_rate_at(const OptimizerOptions& options, int step);

/// Which part of the parameters' states an optimizer holds and updates: ZeRO stage 1.
struct Shard {
  int index = 0;
  int count = 1;
  bool gradients = false;   // stage 2: of the gradients, too, which are then no parameter's own
  bool parameters = false;  // stage 3: of the parameters, too: what is updated is memory of its own
  CopySeat of_experts{};    // instead of the first two, where pipelines share out experts
};

/// Whether a number of a parameter always lies at the same place of its tensor, as far as kernels
/// can see it: not where shards cut tensors. Kernels round the numbers behind the last whole vector
/// otherwise than those in vectors; where places may differ, all are in vectors.
enum class Places { AreKept, MayDiffer };

/// What an update does to gradients first. Tensors without dimensions on the parameters' device, so
/// that nobody waits for their values; undefined: nothing.
struct GradientUse {
  at::Tensor scale;     // gradients are multiplied with it
  at::Tensor overflow;  // float32; 1: they are not finite, and nothing but themselves changes
};

/// With gradient g at update t, AdamW (Loshchilov & Hutter, ICLR 2019) does
///   m = β₁m + (1−β₁)g,  v = β₂v + (1−β₂)g²,
///   w = w − η·λ·w − η · (m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε),
/// SGD w = w − η·(g + λw), and with momentum v = μv + (g + λw), w = w − ηv.
/// Parameters in 16 bits have a master copy in float32, which is what is updated.
class Optimizer {
 public:
  /// One tensor that the optimizer keeps for a parameter, or for the slice of it that is its
  /// shard's.
  struct State {
    std::size_t parameter = 0;
    std::string name;  // exp_avg, exp_avg_sq, step, momentum, master
    at::Tensor value;
    std::int64_t begin = 0;   // of the slice, in numbers
    std::int64_t whole = -1;  // numbers of the whole tensor; -1: this is it
  };

  /// Allocates the states, and zeroed gradients for parameters that have none: from here on a
  /// backward only adds to them. Of sharded gradients, those of its shard. `of_experts`: as in
  /// CopiedParameters. `rules`: by parameter; empty: all decay as the options say. `named`: what an
  /// optimizer of one's own is told of each; empty: nothing. Throws InputError when a parameter to
  /// be sliced is not contiguous, or the own optimizer's states do not fit their parameters.
  Optimizer(std::vector<at::Tensor> parameters, const OptimizerOptions& options, Shard shard = {},
            Places places = Places::AreKept, std::vector<bool> of_experts = {},
            const std::vector<ParameterRule>& rules = {}, std::vector<RuledParameter> named = {});

  /// One update; zeroes the gradients.
  void step(double learning_rate, const GradientUse& use = {}) {
    step(0, parameters_.size(), learning_rate, use);
  }
  /// The same for parameters [first, last) alone. One of one's own steps all of them with the last.
  void step(std::size_t first, std::size_t last, double learning_rate, const GradientUse& use = {});
  /// Before a `step` that must not change what others still hold of the parameters' memory: the
  /// parameters move to memory of their own.
  void leave_weights(std::size_t first, std::size_t last);

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const CopiedParameters& copied() const { return copied_; }
  /// Whether other copies have slices of the parameter.
  bool is_divided(std::size_t parameter) const {
    return (copied_.is_of_experts(parameter) ? shard_.of_experts.count : shard_.count) > 1;
  }
  /// Of parameters with such copies, parts of their own memory, in order: those of any shard.
  Tensors slices(int shard, CopiesOf copies = CopiesOf::Rest) const;
  /// What `step` updates: the slices of the own shard, or what stands for them where parameters are
  /// sharded.
  Tensors own_slices() const;
  /// Those of parameters with such copies, and which of all they are.
  Tensors own_slices(CopiesOf copies) const;
  std::vector<std::size_t> own_places(CopiesOf copies) const;
  /// What `step` steps with, by slice, where gradients are sharded.
  const Tensors& gradients() const { return gradients_; }
  /// The same as `states` are, named as nothing: what a step will step with, before it is scaled.
  std::vector<State> gradient_slices() const;
  const std::vector<RuledParameter>& named() const { return named_; }
  /// Changing a value changes the optimizer.
  std::vector<State> states() const;
  /// Call after they were set from outside.
  void states_were_set();
  /// Call after a parameter was set from outside: its shard and master copies take its value.
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
  /// Of some slices, what an update reads and writes; of each list none or as many as gradients.
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
  std::vector<ParameterRule> rules_;  // of the slices
  Tensors updated_;                   // slices of the parameters, or master copies
  Tensors gradients_;                 // of the slices, where they are sharded
  Tensors values_;                    // likewise
  Tensors first_moments_, second_moments_, step_counts_;
  bool has_masters_ = false;
  std::vector<RuledParameter> named_;  // by parameter
  Tensors seen_;                       // by slice: what an optimizer of one's own steps
  std::unique_ptr<OwnOptimizer> own_optimizer_;
};

}  // namespace pipewright::exec
