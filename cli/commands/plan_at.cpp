#include "commands/plan_at.hpp"

#include "pipewright/sim/scenario/scenario_plan.hpp"
#include "pipewright/trace/files/recorded_days.hpp"

namespace pipewright::cli {

std::optional<PlanAt> plan_at(const PercentileOptions& options) {
  if (options.at.empty())
    return {};
  return PlanAt{.word = options.at,
                .fraction = std::stod(options.at.substr(1)) / 100,
                .jitter = sim::Jitter(trace::read_record(options.jitter)),
                .options = {.count = options.draws.value_or(1000),
                            .seed = static_cast<std::uint64_t>(options.seed.value_or(0))}};
}

double seconds_at(const PlanAt& at, const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  const sim::ScenarioPlan plan = sim::lay_out(scenario, costs);
  return sim::draw_iterations(*plan.structure, plan.costs, at.jitter, at.options)
      .percentile(at.fraction);
}

}  // namespace pipewright::cli
