#pragma once

// What a stage of Piper's can be, whatever the target: the stages between two order ideals, with
// their time and memory by tensor and data parallel size.

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pipewright/search/partitioners/order_ideals.hpp"
#include "planners/piper_problem.hpp"
#include "planners/recompute_choice.hpp"

namespace pipewright::planners {

class PiperStages;

/// The nodes between two ideals on `tensor` devices a copy.
class PiperStageOption {
 public:
  PiperStageOption(const PiperStages& stages, std::size_t inner, std::size_t outer,
                   std::size_t tensor);

  /// False where a node has no variant on so many devices, or where not one microbatch fits.
  bool is_possible() const { return is_possible_; }

  /// The most microbatches under way with which a sample takes no longer than `seconds`; 0 for
  /// none.
  int most_under_way(int copies, double seconds) const;

  /// What is computed again with so many microbatches under way.
  std::vector<int> recomputed(int under_way) const;

 private:
  double bytes(int under_way) const { return bytes_per_microbatch_ * under_way + bytes_; }
  double seconds_lost(int under_way) const;
  bool choose(int under_way) const;

  const PiperStages* stages_;
  std::size_t inner_, outer_, tensor_;
  double seconds_ = 0;  // of a sample, with transfers over the borders
  double parameter_bytes_ = 0;
  double bytes_per_microbatch_ = 0;
  double bytes_ = 0;
  bool is_possible_ = true;
  mutable std::vector<std::pair<int, double>> lost_;  // by microbatches under way; mostly none
};

/// All stages of a problem. Ideals hold the nodes from a border to the end, the empty one first.
class PiperStages {
 public:
  explicit PiperStages(const PiperProblem& problem);

  const std::vector<search::NodeSet>& ideals() const { return ideals_; }
  /// Tensor parallel sizes are given by their place, ascending.
  std::size_t tensors() const { return tensors_.size(); }
  int tensor_size(std::size_t tensor) const { return tensors_[tensor].size; }

  /// The least compute of a sample, devices times seconds, of an ideal's nodes.
  double work(std::size_t ideal) const { return work_[ideal]; }

  bool is_stage(std::size_t inner, std::size_t outer) const {
    return search::is_inside(ideals_[inner], ideals_[outer]);
  }

  /// Less than what the stage between two ideals computes for a sample, on one copy.
  double least_seconds(std::size_t inner, std::size_t outer, std::size_t tensor) const {
    return tensors_[tensor].seconds[outer] - tensors_[tensor].seconds[inner];
  }

  /// False where so many microbatches under way do not fit, whatever is computed again.
  bool may_fit(std::size_t inner, std::size_t outer, std::size_t tensor, int under_way) const {
    const auto stage = [&](const std::vector<double>& sums) { return sums[outer] - sums[inner]; };
    const Tensor& sums = tensors_[tensor];
    return stage(sums.least_bytes_per_microbatch) * under_way + stage(sums.least_bytes) <=
           problem_->memory_bytes * (1 + 1e-9);
  }

  /// Made when it is asked for first.
  const PiperStageOption& option(std::size_t inner, std::size_t outer, std::size_t tensor) const;

  std::vector<int> nodes(std::size_t inner, std::size_t outer) const;
  int fastest_variant(int node, std::size_t tensor) const {
    return tensors_[tensor].fastest[static_cast<std::size_t>(node)];
  }

 private:
  friend class PiperStageOption;

  /// All nodes on one tensor parallel size.
  struct Tensor {
    int size = 1;
    std::vector<const PiperSplit*> splits{};  // null: not possible
    std::vector<int> fastest{};               // variants
    // Sums over each ideal.
    std::vector<double> seconds{};
    std::vector<double> least_bytes_per_microbatch{};
    std::vector<double> least_bytes{};
    mutable RecomputeChoice choice{};
  };

  Tensor tensor_of(int size) const;

  /// The nodes between two ideals, until the next call.
  const search::NodeSet& stage(std::size_t inner, std::size_t outer) const;

  const PiperProblem* problem_;
  std::vector<search::NodeSet> ideals_;
  std::vector<Tensor> tensors_;
  std::vector<double> work_;
  mutable search::NodeSet stage_;
  mutable std::unordered_map<std::uint64_t, PiperStageOption> options_;
};

}  // namespace pipewright::planners
