// Scenarios: the layers of the model can be listed, and the schedule is made or rejected with a
// message.

#include <string_view>

#include "json_text.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "reader.hpp"

namespace scenario_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::demand;
using pipewright::fuzz::may_be_refused;
using pipewright::fuzz::read_back;

/// Returns false for large schedules. Generators are pure functions of sizes, so these would only
/// take long; impossible sizes are rejected at once.
bool is_worth_making(const ScheduleRequest& request) {
  const double actions = 3.0 * stage_count(request) * request.microbatches;
  return actions < 500 || actions > 1e9;
}

void try_text(std::string_view text) {
  const auto scenario = read_back<Scenario>(
      text, [](const JsonDocument& document) { return scenario_from_json(document); });
  if (!scenario)
    return;
  const Model model = model_of(*scenario);
  const ScheduleRequest request = request_of(scenario->pipeline);
  demand(stage_count(request) >= 1, "there is a stage");
  demand(stage_count(request) <= static_cast<int>(model.layers.size()), "every stage has a layer");
  may_be_refused([&] { lowering_of(request); });
  if (is_worth_making(request))
    may_be_refused([&] { lower(make_schedule(request), lowering_of(request)); });
  const auto* method = std::get_if<std::string>(&scenario->pipeline.partition);
  if (const auto pattern = method == nullptr ? std::nullopt : type_pattern(*method))
    may_be_refused([&] { type_weights(model, *pattern); });
}

const pipewright::fuzz::Reader reader("scenario", try_text);

}  // namespace scenario_fuzz
