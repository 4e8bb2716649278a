#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipewright/plan/statistics.hpp"
#include "straggler/remedy_judge.hpp"

namespace pipewright::trace {
namespace {

constexpr int parts_of_stage = 4;  // its layers, which move in quarters

/// Number of such parts per stage: four at present.
using Parts = std::vector<int>;

class LayerRemedies {
 public:
  explicit LayerRemedies(RemedyJudge& judge) : judge_(judge) {
    const int stages = judge.layout().stages;
    for (int stage = 0; stage < stages; ++stage)
      for (const Direction direction : both_directions) {
        const double time = std::max(0.0, judge.source().mean_stage(stage, direction));
        const double fixed = time * fixed_part(judge, stage, direction);
        fixed_s_.resize(static_cast<std::size_t>(stage) + 1);
        part_s_.resize(static_cast<std::size_t>(stage) + 1);
        fixed_s_.back() += fixed;
        part_s_.back() += (time - fixed) / parts_of_stage;
      }
  }

  /// Moves one part at a time from the slowest stage to the stage that is fastest with it, as long
  /// as the slowest stage becomes faster. Reports the first move and the best result.
  void run() {
    Parts parts(fixed_s_.size(), parts_of_stage), best;
    double best_s =
        RemedyJudge::learnt_mean(replayed_steps(judge_.steps().graph, judge_.steps().recorded));
    bool is_first = true;
    while (move_one(parts)) {
      const JobTimes times = times_with(parts);
      if (is_first)
        add(parts, times);
      const double step_s = RemedyJudge::learnt_mean(replayed_steps(judge_.steps().graph, times));
      if (step_s < best_s) {
        best_s = step_s;
        best = is_first ? Parts{} : parts;
      }
      is_first = false;
    }
    if (!best.empty())
      add(best, times_with(best));
  }

 private:
  double stage_s(const Parts& parts, std::size_t stage) const {
    return fixed_s_[stage] + part_s_[stage] * parts[stage];
  }

  bool move_one(Parts& parts) const {
    std::size_t slowest = 0, quickest = 0;
    for (std::size_t stage = 0; stage < parts.size(); ++stage) {
      if (stage_s(parts, stage) > stage_s(parts, slowest))
        slowest = stage;
      if (stage_s(parts, stage) + part_s_[stage] < stage_s(parts, quickest) + part_s_[quickest])
        quickest = stage;
    }
    const int least = fixed_s_[slowest] > 0 ? 0 : 1;  // the head may be alone on its stage
    const bool helps = stage_s(parts, quickest) + part_s_[quickest] < stage_s(parts, slowest);
    if (parts[slowest] <= least || !helps)
      return false;
    --parts[slowest];
    ++parts[quickest];
    return true;
  }

  JobTimes times_with(const Parts& parts) const {
    JobTimes times = judge_.steps().recorded;
    const JobLayout& layout = judge_.layout();
    std::vector<std::array<double, 2>> factors;
    for (int stage = 0; stage < layout.stages; ++stage) {
      const double moved = parts[static_cast<std::size_t>(stage)] / double{parts_of_stage};
      const auto factor = [&](Direction direction) {
        const double fixed = fixed_part(judge_, stage, direction);
        return fixed + (1 - fixed) * moved;
      };
      factors.push_back({factor(Direction::Forward), factor(Direction::Backward)});
    }
    const auto& nodes = judge_.steps().graph.nodes;
    for (NodeNumber node = 0; node < nodes.size(); ++node)
      if (is_compute(nodes[node].operation))
        for (double& time : times.of(node))
          time *= factors[static_cast<std::size_t>(layout.stage_of(nodes[node].worker))]
                         [nodes[node].operation == JobOperation::Forward ? 0 : 1];
    return times;
  }

  void add(const Parts& parts, const JobTimes& times) {
    std::vector<std::string> moves;
    for (std::size_t stage = 0; stage < parts.size(); ++stage)
      if (parts[stage] != parts_of_stage)
        moves.push_back(fmt::format("stage {} {} of its quarters", stage,
                                    change_words(parts[stage] - parts_of_stage)));
    judge_.add(
        {.kind = "move layers",
         .change = fmt::format("move stage boundaries: {} (quarters of layers by stage: {})",
                               fmt::join(moves, ", "), fmt::join(parts, ", ")),
         .supposed = "the layers of a stage are equal and move in quarters; the time that the "
                     "first and the last stage take beyond the middle ones is embedding, "
                     "head and loss, which stay; a layer takes as long on its new stage as "
                     "the layers there"},
        times);
  }

  static std::string change_words(int change) {
    return change < 0 ? fmt::format("gives {}", -change) : fmt::format("gets {}", change);
  }

  RemedyJudge& judge_;
  std::vector<double> fixed_s_, part_s_;  // by stage: the part that stays, and one movable part
};

}  // namespace

double fixed_part(const RemedyJudge& judge, int stage, Direction direction) {
  const int stages = judge.layout().stages;
  if (stages < 2 || (stage > 0 && stage + 1 < stages))
    return 0;
  std::vector<double> others;
  for (int other = 0; other < stages; ++other)
    if (stages > 2 ? other > 0 && other + 1 < stages : other != stage)
      others.push_back(judge.usual_s(other, direction));
  const double own = judge.usual_s(stage, direction);
  return own > 0 ? std::max(0.0, 1 - plan::median(others) / own) : 0;
}

void try_layers(RemedyJudge& judge) {
  if (judge.layout().stages > 1)
    LayerRemedies(judge).run();
}

}  // namespace pipewright::trace
