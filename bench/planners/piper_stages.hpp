#pragma once

// The possible stages of a Piper problem, for any target time: the nodes between two order ideals,
// with their time and memory by tensor- and data-parallel size.

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

/// The nodes between two ideals on `tensor` devices per replica.
class PiperStageOption {
 public:
  PiperStageOption(const PiperStages& stages, std::size_t inner, std::size_t outer,
                   std::size_t tensor);

  /// Returns false if a node has no variant on that many devices, or if not even one microbatch
  /// fits.
  bool is_possible() const { return is_possible_; }

  /// Returns the largest number of microbatches in flight for which a sample takes at most
  /// `seconds`; 0 if none does.
  int most_under_way(int copies, double seconds) const;

  /// Returns the nodes that are recomputed with this number of microbatches in flight.
  std::vector<int> recomputed(int under_way) const;

 private:
  double bytes(int under_way) const { return bytes_per_microbatch_ * under_way + bytes_; }
  double seconds_lost(int under_way) const;
  bool choose(int under_way) const;

  const PiperStages* stages_;
  std::size_t inner_, outer_, tensor_;
  double seconds_ = 0;  // of a sample, with transfers across boundaries
  double parameter_bytes_ = 0;
  double bytes_per_microbatch_ = 0;
  double bytes_ = 0;
  bool is_possible_ = true;
  mutable std::vector<std::pair<int, double>> lost_;  // by microbatches in flight; usually empty
};

/// All stages of a problem. Ideals contain the nodes from a boundary to the end; the empty one
/// comes first.
class PiperStages {
 public:
  explicit PiperStages(const PiperProblem& problem);

  const std::vector<search::NodeSet>& ideals() const { return ideals_; }
  /// Tensor-parallel sizes are identified by index, in ascending order.
  std::size_t tensors() const { return tensors_.size(); }
  int tensor_size(std::size_t tensor) const { return tensors_[tensor].size; }

  /// Returns the minimum compute of an ideal's nodes for one sample, in device-seconds.
  double work(std::size_t ideal) const { return work_[ideal]; }

  bool is_stage(std::size_t inner, std::size_t outer) const {
    return search::is_inside(ideals_[inner], ideals_[outer]);
  }

  /// Returns a lower bound for the compute time of the stage between two ideals for one sample, on
  /// one replica.
  double least_seconds(std::size_t inner, std::size_t outer, std::size_t tensor) const {
    return tensors_[tensor].seconds[outer] - tensors_[tensor].seconds[inner];
  }

  /// Returns false if this number of microbatches in flight does not fit, whatever is recomputed.
  bool may_fit(std::size_t inner, std::size_t outer, std::size_t tensor, int under_way) const {
    const auto stage = [&](const std::vector<double>& sums) { return sums[outer] - sums[inner]; };
    const Tensor& sums = tensors_[tensor];
    return stage(sums.least_bytes_per_microbatch) * under_way + stage(sums.least_bytes) <=
           problem_->memory_bytes * (1 + 1e-9);
  }

  /// Returns the option, which is made on first use.
  const PiperStageOption& option(std::size_t inner, std::size_t outer, std::size_t tensor) const;

  std::vector<int> nodes(std::size_t inner, std::size_t outer) const;
  int fastest_variant(int node, std::size_t tensor) const {
    return tensors_[tensor].fastest[static_cast<std::size_t>(node)];
  }

 private:
  friend class PiperStageOption;

  /// All nodes with one tensor-parallel size.
  struct Tensor {
    int size = 1;
    std::vector<const PiperSplit*> splits{};  // null: not possible
    std::vector<int> fastest{};               // index of the fastest variant
    // Sums over each ideal.
    std::vector<double> seconds{};
    std::vector<double> least_bytes_per_microbatch{};
    std::vector<double> least_bytes{};
    mutable RecomputeChoice choice{};
  };

  Tensor tensor_of(int size) const;

  /// Returns the nodes between two ideals, valid until the next call.
  const search::NodeSet& stage(std::size_t inner, std::size_t outer) const;

  const PiperProblem* problem_;
  std::vector<search::NodeSet> ideals_;
  std::vector<Tensor> tensors_;
  std::vector<double> work_;
  mutable search::NodeSet stage_;
  mutable std::unordered_map<std::uint64_t, PiperStageOption> options_;
};

}  // namespace pipewright::planners
