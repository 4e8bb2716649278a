#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "closed_forms.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {
namespace {

void check_chimera(int ranks, int microbatches) {
  check_sizes("chimera", ranks, microbatches, 2);
  if (ranks % 2 != 0)
    throw InputError(fmt::format("chimera: {} ranks asked for, but it needs an even number: {}",
                                 ranks, nearest_multiples(ranks, 2, 2)));
  if (microbatches % 2 != 0)
    throw InputError(fmt::format(
        "chimera: {} microbatches asked for, but half of them go each way, so an even number is "
        "needed: {}",
        microbatches, nearest_multiples(microbatches, 2, 2)));
}

/// An action and the slot in which it runs. A slot is as long as one forward or one backward.
using Slotted = std::pair<int, Action>;

/// Adds the 1F1B schedule of one direction. Its microbatches follow each other in every second
/// slot, so the other direction fits in between. After P/2 microbatches the next unit starts 2P
/// slots later.
void add_direction(std::vector<Slotted>& slots, int stage, int ranks, int first, int count) {
  for (int i = 0; i < count; ++i) {
    const int begin = 2 * (i % (ranks / 2)) + 2 * ranks * (i / (ranks / 2));
    slots.push_back({begin + stage, {ActionKind::Forward, stage, first + i}});
    slots.push_back({begin + 2 * ranks - 1 - stage, {ActionKind::Backward, stage, first + i}});
  }
}

}  // namespace

Schedule make_chimera(int ranks, int microbatches) {
  check_chimera(ranks, microbatches);
  const int half = microbatches / 2;
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Slotted> slots;
    add_direction(slots, rank, ranks, 0, half);
    add_direction(slots, ranks - 1 - rank, ranks, half, half);
    std::sort(slots.begin(), slots.end(),
              [](const Slotted& a, const Slotted& b) { return a.first < b.first; });
    auto& actions = schedule.ranks.emplace_back();
    for (const auto& [slot, action] : slots)
      actions.push_back(action);
  }
  return schedule;
}

ScheduleDescriptor schedule::chimera() {
  return {.name = "chimera",
          .takes = "even P and M; every rank holds two stages' parameters",
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_chimera(r.ranks, r.microbatches)};
          },
          .bubble = {"a fraction (P-2)/(2M+P-2) when F = B",
                     [](const ScheduleSizes& s) -> std::optional<double> {
                       if (s.microbatches % s.ranks != 0 || s.forward != s.backward())
                         return {};
                       // A bubble of a fraction f of the iteration is f / (1 - f) of the work.
                       return (s.ranks - 2.0) / 2 * (s.forward + s.backward());
                     }},
          .activations = {"P", [](const ScheduleSizes& s) -> std::optional<double> {
                            if (s.microbatches < s.ranks)
                              return {};
                            return s.ranks;
                          }}};
}

}  // namespace pipewright::plan
