#include "pipewright/models/trainers/cut_context.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/partitioners/layout.hpp"

namespace pipewright::models {
namespace {

void set_model(CutContext& context, const plan::ModelShape& shape) {
  const auto letters = plan::find_layout_letters(plan::model_of(shape));
  if (letters && letters->size() > 2 &&
      *letters == "E" + std::string(letters->size() - 2, 't') + "L")
    context.blocks = static_cast<int>(letters->size()) - 2;
  if (letters)
    context.units = plan::sample_of(shape).units;
}

}  // namespace

CutContext cut_context(const plan::Scenario& scenario) {
  CutContext context{.replicas = scenario.pipeline.replicas};
  set_model(context, scenario.model);
  return context;
}

CutContext cut_context(const plan::JsonDocument& document,
                       const std::vector<std::string>& assignments) {
  plan::JsonDocument changed = document;
  for (const std::string& assignment : assignments)
    if (assignment.starts_with("model.") || assignment.starts_with("pipeline.replicas="))
      changed.set(assignment);
  CutContext context;
  const plan::Json replicas =
      changed.root().value(plan::Json::json_pointer("/pipeline/replicas"), plan::Json(1));
  if (replicas.is_number_integer() && replicas >= 1 && replicas <= 1'000'000)
    context.replicas = replicas.get<int>();
  const plan::Json plain = plan::to_json(plan::Scenario{});
  changed.set("pipeline=" + plain.at("pipeline").dump());
  changed.set("pipeline.ranks=1");
  changed.set("training=" + plain.at("training").dump());
  try {
    set_model(context, plan::scenario_from_json(changed).model);
  } catch (const plan::InputError&) {
    context.blocks = 0;
  }
  return context;
}

}  // namespace pipewright::models
