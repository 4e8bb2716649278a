#include "planners/piper_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "pipewright/plan/error.hpp"
#include "planners/piper_stages.hpp"

namespace pipewright::planners {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A chain of stages up to an ideal: its devices and its last stage.
struct Chain {
  int devices = 0;
  int copies = 0;                // replicas of all its stages, in total
  std::size_t before = 0;        // the ideal before its last stage
  std::size_t chain_before = 0;  // its index among that ideal's chains
  std::size_t tensor = 0;
  int data = 0;
};

/// The chains of an ideal that are not dominated: none needs at most as many devices and replicas
/// as another. Sorted by ascending devices, and so by descending replicas.
using Front = std::vector<Chain>;

/// Collects the chains of one ideal.
class Gathered {
 public:
  explicit Gathered(int devices) : best_(static_cast<std::size_t>(devices) + 1) {}

  void offer(const Chain& chain) {
    Chain& best = best_[static_cast<std::size_t>(chain.devices)];
    if (best.devices == 0 || chain.copies < best.copies)
      best = chain;
  }

  Front take() {
    Front front;
    for (Chain& chain : best_) {
      if (chain.devices > 0 && (front.empty() || chain.copies < front.back().copies))
        front.push_back(chain);
      chain = {};
    }
    return front;
  }

 private:
  std::vector<Chain> best_;
};

class Search {
 public:
  explicit Search(const PiperProblem& problem)
      : problem_(problem),
        stages_(problem),
        most_copies_(std::min(problem.devices, problem.microbatches)),
        gathered_(problem.devices) {
    for (int copies = 1; copies <= most_copies_; ++copies)
      if (problem.microbatches % copies == 0)
        copies_.push_back(copies);
  }

  /// Returns a lower bound for all plans.
  double least_possible() const { return stages_.work(last()) / problem_.devices; }

  /// Returns a plan in which no stage takes longer than `seconds` per sample.
  std::optional<PiperPlan> within(double seconds) {
    std::vector<Front> fronts(stages_.ideals().size());
    fronts[0] = {Chain{}};
    std::vector<std::size_t> reached{0};
    for (std::size_t ideal = 1; ideal <= last(); ++ideal) {
      const int most_devices =
          problem_.devices - needed(stages_.work(last()) - stages_.work(ideal), seconds);
      if (needed(stages_.work(ideal), seconds) > most_devices)
        continue;
      for (const std::size_t before : reached)
        if (stages_.is_stage(before, ideal))
          for (std::size_t tensor = 0; tensor < stages_.tensors(); ++tensor)
            extend(fronts[before], before, ideal, tensor, most_devices, seconds);
      fronts[ideal] = gathered_.take();
      if (!fronts[ideal].empty())
        reached.push_back(ideal);
    }
    if (fronts[last()].empty())
      return std::nullopt;
    return plan_of(fronts);
  }

 private:
  std::size_t last() const { return stages_.ideals().size() - 1; }

  static int needed(double work, double seconds) {
    return static_cast<int>(std::ceil(work / seconds * (1 - 1e-9)));
  }

  /// Adds one stage to the chains of `front`. For each chain, only the smallest number of replicas
  /// with which the stage can hold the microbatches in flight is needed: more only cost devices.
  void extend(const Front& front, std::size_t before, std::size_t ideal, std::size_t tensor,
              int most_devices, double seconds) {
    const double least = stages_.least_seconds(before, ideal, tensor);
    const int size = stages_.tensor_size(tensor);
    const int most_data = (most_devices - front.front().devices) / size;
    if (least > seconds * most_data * (1 + 1e-9))
      return;
    const PiperStageOption* option = nullptr;
    std::size_t waiting = front.size();
    for (const int data : copies_) {
      if (data > most_data || waiting == 0)
        break;
      const int least_copies = front.back().copies + data;
      if (least > seconds * data * (1 + 1e-9) ||
          !stages_.may_fit(before, ideal, tensor, (least_copies + data - 1) / data))
        continue;
      if (option == nullptr)
        option = &stages_.option(before, ideal, tensor);
      if (!option->is_possible())
        return;
      const int most_copies = std::min(most_copies_, data * option->most_under_way(data, seconds));
      // The chains with the fewest replicas come last.
      for (; waiting > 0 && front[waiting - 1].copies + data <= most_copies; --waiting) {
        const Chain& chain = front[waiting - 1];
        if (chain.devices + size * data <= most_devices)
          gathered_.offer({.devices = chain.devices + size * data,
                           .copies = chain.copies + data,
                           .before = before,
                           .chain_before = waiting - 1,
                           .tensor = tensor,
                           .data = data});
      }
    }
  }

  PiperPlan plan_of(const std::vector<Front>& fronts) const {
    PiperPlan plan;
    std::size_t ideal = last(), at = 0;
    while (ideal > 0) {
      const Chain& chain = fronts[ideal][at];
      const int under_way = (chain.copies + chain.data - 1) / chain.data;
      const PiperStageOption& option = stages_.option(chain.before, ideal, chain.tensor);
      PiperStage stage{.nodes = stages_.nodes(chain.before, ideal),
                       .tensor = stages_.tensor_size(chain.tensor),
                       .data = chain.data};
      const auto recomputed = option.recomputed(under_way);
      for (const int node : stage.nodes) {
        const int fastest = stages_.fastest_variant(node, chain.tensor);
        const bool again =
            std::find(recomputed.begin(), recomputed.end(), node) != recomputed.end();
        stage.variants.push_back(again ? 1 - fastest : fastest);
      }
      plan.stages.push_back(std::move(stage));
      ideal = chain.before;
      at = chain.chain_before;
    }
    plan.seconds_per_sample = piper_seconds(problem_, plan.stages);
    return plan;
  }

  const PiperProblem& problem_;
  PiperStages stages_;
  int most_copies_;
  std::vector<int> copies_;
  Gathered gathered_;
};

}  // namespace

PiperPlan piper_plan(const PiperProblem& problem) {
  constexpr double close = 1e-12;
  constexpr double far_off = 1e6;
  Search search(problem);
  double too_fast = search.least_possible();
  std::optional<PiperPlan> best;
  // Near the lower bound few chains are possible, so the search is fast.
  for (double gap = 1.0 / 256; !best && gap < far_off; gap *= 2) {
    const double seconds = search.least_possible() * (1 + gap);
    best = search.within(seconds);
    if (!best)
      too_fast = seconds;
  }
  if (!best)
    throw plan::Infeasible(
        fmt::format("no plan fits {} devices of {} bytes", problem.devices, problem.memory_bytes));
  while (best->seconds_per_sample - too_fast > close * best->seconds_per_sample) {
    const double middle = (best->seconds_per_sample + too_fast) / 2;
    if (auto better = search.within(middle))
      best = std::move(better);
    else
      too_fast = middle;
  }
  return *best;
}

}  // namespace pipewright::planners
