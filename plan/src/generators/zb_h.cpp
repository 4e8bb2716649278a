#include <algorithm>

#include "closed_forms.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {
namespace {

enum class TakesWeightGradient { Oldest, Newest };

/// Returns the actions of one rank: first `warm_up` forwards. Then, for each microbatch, an input
/// gradient, a weight gradient once `delay` of them are owed, and the next forward. The weight
/// gradients still owed come last.
std::vector<Action> zero_bubble_rank(int stage, int microbatches, int warm_up, int delay,
                                     TakesWeightGradient takes) {
  std::vector<Action> actions;
  actions.reserve(3 * static_cast<std::size_t>(microbatches));
  const int first = std::min(warm_up, microbatches);
  const int owed = std::min(delay, microbatches);  // weight gradients left for the end
  const bool newest = takes == TakesWeightGradient::Newest;
  for (int m = 0; m < first; ++m)
    actions.push_back({ActionKind::Forward, stage, m});
  for (int m = 0; m < microbatches; ++m) {
    actions.push_back({ActionKind::InputGradient, stage, m});
    if (m >= delay)
      actions.push_back({ActionKind::WeightGradient, stage, newest ? m : m - delay});
    if (m + first < microbatches)
      actions.push_back({ActionKind::Forward, stage, m + first});
  }
  for (int left = owed; left > 0; --left)
    actions.push_back({ActionKind::WeightGradient, stage, newest ? left - 1 : microbatches - left});
  return actions;
}

}  // namespace

Schedule make_zb_h1(int ranks, int microbatches) {
  check_sizes("zb-h1", ranks, microbatches);
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank)
    schedule.ranks.push_back(
        zero_bubble_rank(rank, microbatches, ranks - rank, rank, TakesWeightGradient::Newest));
  return schedule;
}

Schedule make_zb_h2(int ranks, int microbatches) {
  check_sizes("zb-h2", ranks, microbatches);
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank)
    schedule.ranks.push_back(zero_bubble_rank(rank, microbatches, 2 * (ranks - rank) - 1, 2 * rank,
                                              TakesWeightGradient::Oldest));
  return schedule;
}

namespace {

/// Returns true if the weight gradients fit into the idle time that they fill.
bool short_weight_gradients(const ScheduleSizes& s) {
  return s.weight_gradient <= std::min(s.forward, s.input_gradient);
}

}  // namespace

ScheduleDescriptor schedule::zb_h1() {
  return {.name = "zb-h1",
          .aliases = {"ZeroBubble-H1", "ZB-1p"},
          .planned = Planned::ByDefault,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_zb_h1(r.ranks, r.microbatches)};
          },
          .bubble = {"(P-1)(F+I-W)",
                     [](const ScheduleSizes& s) -> std::optional<double> {
                       if (s.microbatches < s.ranks || !short_weight_gradients(s))
                         return {};
                       return (s.ranks - 1) * (s.forward + s.input_gradient - s.weight_gradient);
                     }},
          .activations = one_f_one_b_activations()};
}

ScheduleDescriptor schedule::zb_h2() {
  return {.name = "zb-h2",
          .aliases = {"ZeroBubble-H2"},
          .planned = Planned::OnRequest,
          .steps_by_rank = true,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_zb_h2(r.ranks, r.microbatches)};
          },
          .bubble = {"(P-1)(F+I-2W)",
                     [](const ScheduleSizes& s) -> std::optional<double> {
                       if (s.microbatches < 2 * s.ranks - 1 || !short_weight_gradients(s))
                         return {};
                       return (s.ranks - 1) *
                              (s.forward + s.input_gradient - 2 * s.weight_gradient);
                     }},
          .bubble_is_of_span = true,
          .activations = {"min(M, 2P-1)", [](const ScheduleSizes& s) {
                            return std::min(s.microbatches, 2 * s.ranks - 1);
                          }}};
}

}  // namespace pipewright::plan
