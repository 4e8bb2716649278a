#include "pipewright/loop/predict/savings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/loop/predict/sensitivities.hpp"
#include "pipewright/plan/quantity_text.hpp"

namespace pipewright::loop {
namespace {

std::string saves(double saved) {
  return saved > 0 ? fmt::format("saves {}", plan::time_text(saved * 1e-3)) : "saves nothing";
}

Saving of_stage(int stage, double saved) {
  return {.part = Saving::Part::Stage,
          .stage = stage,
          .saved = saved,
          .text = fmt::format("1 ms less in stage {} for each microbatch {}", stage, saves(saved))};
}

Saving of_layer(int stage, int layer, const std::string& name, double saved) {
  return {.part = Saving::Part::Layer,
          .stage = stage,
          .layer = layer,
          .saved = saved,
          .text = fmt::format("1 ms less in layer {} ({}) for each microbatch {}", layer, name,
                              saves(saved))};
}

/// Returns the saving of a millisecond less latency or a millisecond less occupancy of the link,
/// whichever saves more.
Saving of_link(const sim::LinkSensitivity& link) {
  const double saved = std::max(link.latency, link.occupancy);
  return {.part = Saving::Part::Link,
          .from = link.from,
          .to = link.to,
          .saved = saved,
          .text = fmt::format("1 ms less in each transfer from rank {} to rank {} {}", link.from,
                              link.to, saves(saved))};
}

}  // namespace

std::vector<Saving> savings_of(const sim::ScenarioPlan& plan, const sim::Times& times,
                               const plan::LayerCosts& costs) {
  const Sensitivities found = sensitivities_of(plan, times);
  std::vector<Saving> savings;
  for (std::size_t s = 0; s < found.stages.size(); ++s)
    savings.push_back(of_stage(static_cast<int>(s), found.stages[s].all));
  for (std::size_t s = 0; s < found.stages.size(); ++s)
    for (int layer = plan.partition.boundaries[s]; layer < plan.partition.boundaries[s + 1];
         ++layer) {
      const plan::LayerCost& cost = costs.layers[static_cast<std::size_t>(layer)];
      savings.push_back(
          of_layer(static_cast<int>(s), layer, cost.name, layer_saving(cost, found.stages[s])));
    }
  for (const sim::LinkSensitivity& link : found.links)
    savings.push_back(of_link(link));
  std::stable_sort(savings.begin(), savings.end(),
                   [](const Saving& a, const Saving& b) { return a.saved > b.saved; });
  return savings;
}

ActionSlack in_words(const sim::Structure& structure, const std::vector<double>& slack, int event) {
  const auto& own = structure.events()[event];
  const double room = slack[static_cast<std::size_t>(event)];
  const std::string action =
      fmt::format("{} on rank {}", plan::to_string(*own.instruction), own.rank);
  constexpr double least = 1e-9;  // rounding errors are smaller
  std::string text = room > least
                         ? fmt::format("{} could end {} later", action, plan::time_text(room))
                         : action + " is on the critical path: any delay lengthens the iteration";
  return {event, own.rank, room, std::move(text)};
}

}  // namespace pipewright::loop
