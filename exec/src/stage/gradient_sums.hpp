#pragma once

// In which order gradients are added up. Floating-point sums depend on it, so in exact mode it is
// part of the training and not of the plan: the microbatches of the whole batch form groups, those
// of a group are added in their order, and then the groups in theirs. A schedule that computes them
// in another order sets aside what comes too early.

#include <map>
#include <vector>

#include "gradient_sources.hpp"
#include "ordered_sum.hpp"
#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// Part of a parameter's gradient: what one group adds to it.
struct GradientPart {
  std::int64_t parameter = 0;
  std::int64_t group = 0;
  at::Tensor value;
};

class GradientSums {
 public:
  /// `microbatches`: those that will be computed here, by group. Each parameter has a zeroed
  /// gradient, which becomes the sum of the first group. Where it is of another type than the
  /// parameter, so are all sums: what a backward makes is added to them. Without `exact`, all
  /// groups are one, in the order of arrival.
  GradientSums(std::vector<at::Tensor> parameters, std::map<int, std::vector<int>> microbatches,
               bool exact, GradientSources sources = {});

  /// Call right before and right after what adds the gradients of a microbatch to `.grad`.
  void begin(int microbatch);
  void end(int microbatch);

  /// What adds gradients to `.grad` from now on adds to nothing, until `take_apart`, which returns
  /// it: by parameter, undefined where there is none.
  void begin_apart();
  Tensors take_apart();
  /// Adds the gradients of a microbatch, in memory that stays the caller's.
  void add(int microbatch, const Tensors& gradients);

  /// What has been summed here.
  std::vector<GradientPart> parts() const;
  /// The share of that which the microbatches computed here add: a tied weight's sums are on each
  /// of its stages the same, and those of all pipelines' directions.
  std::vector<GradientPart> own_parts() const;
  /// Replaces what is known of some parameters.
  void replace(std::vector<GradientPart> parts);
  /// Where `finish` puts the sum of a parameter.
  const at::Tensor& total(std::size_t parameter) const { return first_[parameter]; }
  /// Whether pipelines share the parameter out as one of experts.
  bool is_of_experts(std::size_t parameter) const { return of_experts_[parameter]; }
  /// Says that the sums of these parameters stand there already.
  void are_total(const std::vector<std::size_t>& parameters);
  /// Adds up the groups, in their order, into `.grad`, and is ready for the next step.
  void finish();

 private:
  OrderedSum& group_of(int microbatch);
  void point_at(const Tensors& sums);

  /// Where a backward puts gradients: a parameter, or an alias of one.
  struct Leaf {
    at::Tensor tensor;
    std::size_t parameter;
    int shift;  // from the groups of this pipeline to those of the tokens'
  };
  void add_leaves(const GradientSources& sources);

  std::size_t parameters_;  // of the leaves so many, in front
  std::vector<Leaf> leaves_;
  std::vector<bool> of_experts_;  // by parameter
  Tensors first_;                 // by leaf: the parameters' own gradients
  std::map<int, OrderedSum> groups_;
  std::map<int, int> group_of_microbatch_;
  bool other_type_ = false;  // than the parameters have
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> replaced_;  // (parameter, group)
};

}  // namespace pipewright::exec
