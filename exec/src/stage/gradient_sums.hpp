#pragma once

// The order in which gradients are added. Floating-point sums depend on it, so in exact mode the
// order belongs to the training and not to the plan. The microbatches of the whole batch form
// groups; those of a group are added in their order, and then the groups in theirs. If a schedule
// computes gradients in another order, those that come too early are set aside.

#include <map>
#include <vector>

#include "gradient_sources.hpp"
#include "ordered_sum.hpp"
#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// A part of a parameter's gradient: the sum over one group.
struct GradientPart {
  std::int64_t parameter = 0;
  std::int64_t group = 0;
  at::Tensor value;
};

class GradientSums {
 public:
  /// `microbatches` are those that this rank computes, by group. Each parameter has a zeroed
  /// gradient, which becomes the sum of the first group. If it has another type than the parameter,
  /// all sums have that type, and a backward's gradients are added to them. Without `exact`, all
  /// groups are one, in the order of arrival.
  GradientSums(std::vector<at::Tensor> parameters, std::map<int, std::vector<int>> microbatches,
               bool exact, GradientSources sources = {});

  /// Call right before and right after work that adds a microbatch's gradients to `.grad`.
  void begin(int microbatch);
  void end(int microbatch);

  /// Redirects gradients that are added to `.grad` until `take_apart`, which returns them by
  /// parameter; undefined for a parameter without one.
  void begin_apart();
  Tensors take_apart();
  /// Adds the gradients of a microbatch. Their memory still belongs to the caller.
  void add(int microbatch, const Tensors& gradients);

  /// Returns all parts that were summed on this rank.
  std::vector<GradientPart> parts() const;
  /// Returns the parts that come from microbatches of this rank. The sums of a tied weight are the
  /// same on each of its stages, and include those of all pipelines' directions.
  std::vector<GradientPart> own_parts() const;
  /// Replaces all parts of some parameters.
  void replace(std::vector<GradientPart> parts);
  /// Returns the tensor into which `finish` writes a parameter's sum.
  const at::Tensor& total(std::size_t parameter) const { return first_[parameter]; }
  /// Returns true if the parameter belongs to an expert, which pipelines share.
  bool is_of_experts(std::size_t parameter) const { return of_experts_[parameter]; }
  /// Declares that the totals of these parameters already contain their sums.
  void are_total(const std::vector<std::size_t>& parameters);
  /// Adds the groups, in their order, into `.grad`, and resets for the next step.
  void finish();

 private:
  OrderedSum& group_of(int microbatch);
  void point_at(const Tensors& sums);

  /// A tensor whose `.grad` a backward adds to: a parameter, or an alias of one.
  struct Leaf {
    at::Tensor tensor;
    std::size_t parameter;
    int shift;  // from this pipeline's groups to those of the tokens' pipeline
  };
  void add_leaves(const GradientSources& sources);

  std::size_t parameters_;  // number of leaves that are parameters; they come first
  std::vector<Leaf> leaves_;
  std::vector<bool> of_experts_;  // by parameter
  Tensors first_;                 // by leaf: the parameters' own gradients
  std::map<int, OrderedSum> groups_;
  std::map<int, int> group_of_microbatch_;
  bool other_type_ = false;  // gradients have another type than parameters
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> replaced_;  // (parameter, group)
};

}  // namespace pipewright::exec
