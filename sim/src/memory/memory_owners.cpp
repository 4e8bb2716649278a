#include <algorithm>
#include <numeric>

#include "held_items.hpp"
#include "pipewright/sim/memory/memory.hpp"

namespace pipewright::sim {
namespace {

/// A gain or a loss, in bytes.
struct OwnedChange {
  double time = 0;
  Owner owner{};
  std::int64_t bytes = 0;
};

OwnersPoint standing_of(plan::Bytes parameters, plan::Bytes gradients, plan::Bytes state) {
  OwnersPoint standing;
  standing[Owner::Parameters] = parameters.value;
  standing[Owner::Gradients] = gradients.value;
  standing[Owner::OptimizerState] = state.value;
  return standing;
}

/// Adds up the changes. All changes at one time are one point.
std::vector<OwnersPoint> added_up(OwnersPoint standing, std::vector<OwnedChange>& changes) {
  std::sort(changes.begin(), changes.end(),
            [](const OwnedChange& a, const OwnedChange& b) { return a.time < b.time; });
  std::vector<OwnersPoint> points{standing};
  for (const OwnedChange& change : changes) {
    if (change.time != points.back().time)
      points.push_back({change.time, points.back().held});
    points.back()[change.owner] += change.bytes;
  }
  return points;
}

}  // namespace

std::string to_string(Owner owner) {
  switch (owner) {
    case Owner::Parameters:
      return "parameters";
    case Owner::Gradients:
      return "gradients";
    case Owner::OptimizerState:
      return "optimizer state";
    case Owner::Activations:
      return "activations";
    case Owner::Inputs:
      return "inputs";
    case Owner::InputGradients:
      return "input gradients";
    case Owner::Buffers:
      return "receive buffers";
    case Owner::Transients:
      return "working memory";
  }
  return "";
}

std::int64_t OwnersPoint::sum() const {
  return std::accumulate(held.begin(), held.end(), std::int64_t{0});
}

std::vector<std::vector<OwnersPoint>> MemoryModel::by_owner(const StepCosts& costs,
                                                            const Times& times) const {
  const plan::Program& program = structure_.program();
  const HeldItems items(structure_, holding_);
  const auto when = [&](const EventPoint& point) {
    return time_of(point, structure_, costs, times);
  };
  std::vector<OwnedChange> changes;
  // `length` is that of the microbatch.
  const auto add = [&](const HeldItem& item, int stage, double length) {
    const std::int64_t bytes = bytes_of(item.amount, costs, stage, length);
    if (bytes == 0)
      return;
    changes.push_back({when(item.from), owner_of(item.amount), bytes});
    const double until = item.outlasts < 0
                             ? when(item.until)
                             : std::max(when(item.until), times[item.outlasts].lets_go());
    changes.push_back({until, owner_of(item.amount), -bytes});
  };
  std::vector<std::vector<OwnersPoint>> ranks;
  for (std::size_t rank = 0; rank < stages_of_rank_.size(); ++rank) {
    changes.clear();
    plan::Bytes parameters, gradients, state;
    for (const int stage : stages_of_rank_[rank]) {
      const plan::StageCost& cost = costs.stages[static_cast<std::size_t>(stage)];
      parameters += standing_parameters(cost) + cost.parameters * (weight_versions_[rank] - 1);
      gradients += standing_gradients(cost) * (1 + more_groups());
      state += cost.optimizer_state;
      for (int m = 0; m < program.microbatches; ++m) {
        if (program.placement.rank_of(stage, m) != static_cast<int>(rank))
          continue;
        const double length = costs.microbatch_lengths.empty()
                                  ? 1
                                  : costs.microbatch_lengths[static_cast<std::size_t>(m)];
        items.for_each(stage, m, [&](const HeldItem& item) { add(item, stage, length); });
      }
    }
    items.for_each_gathered([&](const HeldItem& item) {
      if (structure_.events()[item.named_by].rank == static_cast<int>(rank))
        add(item, item.stage, 1);
    });
    OwnersPoint standing = standing_of(parameters, gradients, state);
    standing[Owner::Transients] =
        (workspaces(costs, static_cast<int>(rank)) + set_aside(costs, static_cast<int>(rank)))
            .value;
    ranks.push_back(added_up(standing, changes));
  }
  return ranks;
}

}  // namespace pipewright::sim
