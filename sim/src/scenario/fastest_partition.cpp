#include "pipewright/sim/scenario/fastest_partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "pipewright/plan/costs/stage_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/memory/memory.hpp"

namespace pipewright::sim {
namespace {

using Boundaries = std::vector<int>;

constexpr double gain = 1 - 1e-12;  // a smaller gain is rounding

class BoundarySearch {
 public:
  BoundarySearch(int layers, Boundaries start, const PartitionEvaluation& evaluate,
                 std::optional<plan::Bytes> memory_cap)
      : start_(std::move(start)),
        evaluate_(evaluate),
        memory_cap_(memory_cap),
        layers_(layers),
        stages_(static_cast<int>(start_.size()) - 1) {}

  FastestPartition run() {
    const double at_start = length_of(start_);
    best_ = start_;

    const bool few = partitions() <= most_to_try_all;
    if (few)
      try_all();
    else
      descend();
    if (!within_cap(best_))
      throw plan::Infeasible(fmt::format(
          "memory: none of {} partitions fits: the lowest peak is {} bytes, but the cap is {}",
          known_.size(), leanest_.value, memory_cap_->value));
    return {.partition = {best_},
            .iteration = {length_of(best_)},
            .balanced = {at_start},
            .exact = few,
            .simulated = static_cast<int>(known_.size())};
  }

 private:
  /// Returns the number of ways to choose the inner boundaries.
  double partitions() const {
    double ways = 1;
    for (int border = 1; border < stages_; ++border)
      ways = ways * (layers_ - border) / border;
    return ways;
  }

  const PartitionNeed& known(const Boundaries& boundaries) {
    const auto [at, is_new] = known_.try_emplace(boundaries);
    if (is_new) {
      at->second = evaluate_(boundaries);
      leanest_ = std::min(leanest_, at->second.peak);
    }
    return at->second;
  }

  double length_of(const Boundaries& boundaries) { return known(boundaries).iteration.value; }
  bool within_cap(const Boundaries& boundaries) {
    return !memory_cap_ || known(boundaries).peak <= *memory_cap_;
  }

  /// Makes these boundaries the best if they are better; returns true if so.
  bool offer(const Boundaries& boundaries) {
    if (!is_better(boundaries))
      return false;
    best_ = boundaries;
    return true;
  }

  /// Boundaries above the cap are compared by their memory, so that a search that starts there
  /// descends to those that fit.
  bool is_better(const Boundaries& boundaries) {
    const bool fits = within_cap(boundaries);
    if (fits != within_cap(best_))
      return fits;
    return fits ? length_of(boundaries) < length_of(best_) * gain
                : known(boundaries).peak < known(best_).peak;
  }

  void try_all() {
    std::vector<bool> cut(static_cast<std::size_t>(layers_) - 1, false);
    std::fill(cut.end() - (stages_ - 1), cut.end(), true);
    do {
      Boundaries boundaries{0};
      for (int layer = 1; layer < layers_; ++layer)
        if (cut[static_cast<std::size_t>(layer) - 1])
          boundaries.push_back(layer);
      boundaries.push_back(layers_);
      offer(boundaries);
    } while (std::next_permutation(cut.begin(), cut.end()));
  }

  /// Takes the best of all moves until none helps.
  void descend() {
    for (bool moved = true; moved;) {
      moved = false;
      const Boundaries from = best_;
      for (std::size_t first = 1; first + 1 < from.size(); ++first)
        for (std::size_t last = first; last + 1 < from.size(); ++last)
          for (const int by : {-4, -2, -1, 1, 2, 4})
            moved |= offer_moved(from, first, last, by);
    }
  }

  bool offer_moved(Boundaries boundaries, std::size_t first, std::size_t last, int by) {
    for (std::size_t border = first; border <= last; ++border)
      boundaries[border] += by;
    const bool increasing =
        boundaries[first - 1] < boundaries[first] && boundaries[last] < boundaries[last + 1];
    return increasing && offer(boundaries);
  }

  const Boundaries start_;
  const PartitionEvaluation& evaluate_;
  std::optional<plan::Bytes> memory_cap_;
  int layers_;
  int stages_;
  Boundaries best_;
  plan::Bytes leanest_{std::numeric_limits<std::int64_t>::max()};
  std::map<Boundaries, PartitionNeed> known_;
};

}  // namespace

FastestPartition fastest_partition(int layers, Boundaries start,
                                   const PartitionEvaluation& evaluate,
                                   std::optional<plan::Bytes> memory_cap) {
  return BoundarySearch(layers, std::move(start), evaluate, memory_cap).run();
}

FastestPartition fastest_partition(const plan::Program& program, const plan::LayerCosts& costs,
                                   const plan::Cluster& cluster,
                                   std::optional<plan::Bytes> memory_cap) {
  const auto layers = static_cast<int>(costs.layers.size());
  const int stages = plan::stage_count(program);
  if (layers < stages)
    throw plan::Infeasible(
        fmt::format("{} stages need a layer each, but there are {}", stages, layers));
  const Structure structure(program);
  Simulator simulator(structure);
  MemoryModel memory(structure, {.gradient_groups = 1});
  StepCosts step;
  step.cluster = cluster;
  const auto evaluate = [&](const Boundaries& boundaries) -> PartitionNeed {
    set_stages(step, costs, {boundaries});
    if (!memory_cap && !plan::shares_links(cluster))
      return {{simulator.iteration(step)}, {}};
    const Times& times = simulator.run_shared(step);
    return {{times.iteration}, memory.curves(step, times).highest_peak()};
  };
  return fastest_partition(layers, plan::balanced_boundaries(plan::profile_weights(costs), stages),
                           evaluate, memory_cap);
}

}  // namespace pipewright::sim
