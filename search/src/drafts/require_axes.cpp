#include "require_axes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/estimates/estimated_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"

namespace pipewright::search {
namespace {

/// An axis along which ranks partition layers, as a field of the search, the scenario and the
/// costs.
struct LayerAxis {
  const char* name;
  std::vector<int> SearchAxes::*asked;
  int plan::Pipeline::*size;
  int plan::LayerCosts::*measured;
};

constexpr LayerAxis layer_axes[] = {
    {"tensor", &SearchAxes::tensor, &plan::Pipeline::tensor, &plan::LayerCosts::tensor},
    {"context", &SearchAxes::context, &plan::Pipeline::context, &plan::LayerCosts::context},
    {"expert", &SearchAxes::expert, &plan::Pipeline::expert, &plan::LayerCosts::expert}};

constexpr std::string_view tokens_axis = "sequence_parallel";

[[noreturn]] void refuse(std::string_view option, const std::string& value,
                         const std::string& reason) {
  throw plan::InputError(fmt::format("--{} {}: {}", option, value, reason));
}

/// Returns why the layers cannot be partitioned like this along that axis, or an empty string.
std::string fault_of(const plan::Scenario& scenario, std::string_view axis) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  if (const auto* const shape = plan::transformer_of(scenario.model); shape != nullptr) {
    for (const plan::CutFault& fault :
         plan::faults_of(plan::training_of(*shape, 1), plan::cut_of(scenario)))
      if (axis == fault.axis)
        return fault.message;
    return {};
  }
  const plan::ModelDescriptor& model = scenario.model.descriptor();
  if (axis == "tensor") {
    const auto faults = model.faults_of_cut(scenario.model, pipeline.tensor);
    return faults.empty() ? "" : faults.front();
  }
  if (axis == "expert" && pipeline.expert > 1)
    return fmt::format("the model {} has no experts; use 1", model.kind);
  if (axis == "context" && pipeline.context > 1)
    return fmt::format("the layers of {} do not partition sequences; use 1", model.kind);
  if (axis == tokens_axis && scenario.model.find<plan::GptShape>() == nullptr)
    return fmt::format("the layers of {} have no tokens to partition; use no", model.kind);
  return {};
}

/// Returns the fault of the group count. Each tensor-parallel rank accumulates whole groups of a
/// product, so the ranks must divide their number.
std::string group_fault(const plan::Scenario& scenario) {
  const int groups = scenario.training.tensor_groups, ranks = scenario.pipeline.tensor;
  return groups == 0 || groups % ranks == 0
             ? ""
             : fmt::format("training.tensor_groups is {}, which is not a multiple of it", groups);
}

/// Returns the fault of a plan that cannot be trained although the draft can.
std::string training_fault(const plan::Scenario& draft, const plan::Scenario& plan,
                           std::string_view axis) {
  const auto predicted = [](const plan::Scenario& scenario) {
    return plan::only_predicted(scenario, plan::RankTransport::Threads);
  };
  const auto fields = predicted(plan);
  if (fields.empty() || !predicted(draft).empty())
    return {};
  return fmt::format(
      "{} is supported in prediction only. Leave it out to train, or predict it with `pipewright "
      "simulate SCENARIO --set pipeline.{}=…`",
      fmt::join(fields, ", "), axis);
}

/// Returns the fault of the costs. Costs of whole layers are divided evenly among tensor- and
/// expert-parallel ranks, as `simulate` does (`plan::costs_of_shards`); other costs are for one
/// size only.
std::string costs_fault(const Draft& draft, const LayerAxis& axis, int size) {
  if (!draft.costs)
    return {};
  const int measured = *draft.costs.*axis.measured;
  const bool is_divided = measured == 1 && axis.measured != &plan::LayerCosts::context;
  if (measured == size || is_divided)
    return {};
  std::vector<std::string> ways;
  if (axis.measured == &plan::LayerCosts::tensor)
    ways.push_back(
        fmt::format("measure them with `pipewright profile SCENARIO --set "
                    "pipeline.tensor={}`",
                    size));
  if (models::has_analytic_costs(draft.scenario))
    ways.emplace_back("omit --costs to estimate them");
  return fmt::format("the costs are for layers that {} rank{} partition{} along {}{}{}", measured,
                     measured == 1 ? "" : "s", measured == 1 ? "s" : "", axis.name,
                     ways.empty() ? "" : ": ", fmt::join(ways, ", or "));
}

void require_layer_axis(const Draft& draft, const DraftSpace& space, const LayerAxis& axis) {
  const int own = draft.scenario.pipeline.*axis.size;
  for (const int size : space.*axis.asked) {
    const auto require = [&](const std::string& fault) {
      if (!fault.empty())
        refuse(axis.name, std::to_string(size), fault);
    };
    plan::Scenario scenario = draft.scenario;
    scenario.pipeline.*axis.size = size;
    scenario.pipeline.sequence_parallel = false;  // require_tokens_axis checks it
    require(fault_of(scenario, axis.name));
    require(group_fault(scenario));
    require(training_fault(draft.scenario, scenario, axis.name));
    require(costs_fault(draft, axis, size));
    if (space.keeps_bits && size != own)
      require(fmt::format("training continues with the same bits only with {}", own));
  }
}

void require_tokens_axis(const Draft& draft, const DraftSpace& space) {
  const bool own = draft.scenario.pipeline.sequence_parallel;
  for (const bool is_parallel : space.sequence_parallel) {
    if (space.keeps_bits && is_parallel != own)
      refuse("sequence-parallel", is_parallel ? "yes" : "no",
             "training continues with the same bits only with the scenario's value");
    for (const int tensor : asked_or(space.tensor, {draft.scenario.pipeline.tensor})) {
      plan::Scenario scenario = draft.scenario;
      scenario.pipeline.tensor = tensor;
      scenario.pipeline.sequence_parallel = is_parallel && tensor > 1;
      if (!scenario.pipeline.sequence_parallel)
        continue;
      if (const std::string fault = fault_of(scenario, tokens_axis); !fault.empty())
        refuse("sequence-parallel", "yes", fault);
    }
  }
}

}  // namespace

void require_axes(const Draft& draft, const DraftSpace& space) {
  for (const std::string& name : space.schedules)
    if (!plan::find_schedule(name).trains_batch())
      throw plan::InputError(fmt::format(
          "{} cannot be chosen: it does not train the batch in one step; these schedules do: {}",
          name, plan::listed_schedules(&plan::ScheduleDescriptor::trains_batch)));
  if (const auto most = std::ranges::max_element(space.pipeline);
      space.devices > 0 && most != space.pipeline.end() && *most > space.devices)
    throw plan::InputError(
        fmt::format("{} ranks are requested, but there are {} devices", *most, space.devices));
  for (const LayerAxis& axis : layer_axes)
    require_layer_axis(draft, space, axis);
  require_tokens_axis(draft, space);
}

}  // namespace pipewright::search
