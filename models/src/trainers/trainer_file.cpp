#include "pipewright/models/trainers/trainer_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "trainers/trainer.hpp"

namespace pipewright::models {
namespace {

const trainer::Words& words_of(Trainer which) {
  switch (which) {
    case Trainer::Megatron:
      return trainer::megatron();
    case Trainer::Torchtitan:
      return trainer::torchtitan();
    case Trainer::TorchtitanToml:
      return trainer::torchtitan_toml();
    case Trainer::DeepSpeed:
      break;
  }
  return trainer::deepspeed();
}

Trainer trainer_of_text(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '{')
    return Trainer::DeepSpeed;
  // A Python function or the header of a TOML table, which start a line.
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with("def "))
      return Trainer::Torchtitan;
    if (line.starts_with('['))
      return Trainer::TorchtitanToml;
    at = end + 1;
  }
  return Trainer::Megatron;
}

}  // namespace

const std::vector<std::string>& trainers() {
  static const std::vector<std::string> words{"megatron", "torchtitan", "torchtitan-0.2",
                                              "deepspeed"};
  return words;
}

std::string to_string(Trainer trainer) { return trainers()[static_cast<std::size_t>(trainer)]; }

Trainer trainer_of(const std::string& word) {
  const auto found = std::ranges::find(trainers(), word);
  if (found == trainers().end())
    throw plan::InputError(fmt::format("\"{}\" is not a known trainer{} (possible: {})", word,
                                       plan::did_you_mean(word, trainers()),
                                       plan::listed(trainers())));
  return static_cast<Trainer>(found - trainers().begin());
}

std::string file_name(Trainer trainer) {
  // A Python module's name must not be that of the package that it imports.
  constexpr std::array<const char*, 4> names{"megatron.txt", "torchtitan_plan.py",
                                             "torchtitan-0.2.toml", "deepspeed.json"};
  return names[static_cast<std::size_t>(trainer)];
}

std::vector<std::string> unsupported_fields(Trainer trainer, const plan::Scenario& scenario) {
  return words_of(trainer).unsupported_fields(scenario);
}

std::string trainer_file(Trainer trainer, const plan::Scenario& scenario) {
  if (const auto lines = unsupported_fields(trainer, scenario); !lines.empty())
    throw plan::Infeasible(
        fmt::format("{} cannot run this plan:\n{}", to_string(trainer), plan::listed_lines(lines)));
  return words_of(trainer).text(scenario);
}

std::optional<std::string> find_trainer_file(Trainer trainer, const plan::Scenario& scenario) {
  if (!unsupported_fields(trainer, scenario).empty())
    return {};
  return words_of(trainer).text(scenario);
}

std::vector<std::string> assignments_of(Trainer trainer, std::string_view text,
                                        const std::string& name, const CutContext& context) {
  return words_of(trainer).assignments(text, name, context);
}

std::vector<std::string> read_assignments(const std::filesystem::path& file, CutContext context) {
  std::string path = file.string();
  if (const std::size_t end = path.rfind(".py:"); end != path.npos) {
    context.function = path.substr(end + 4);
    path.resize(end + 3);
  }
  const std::string text = plan::read_file(path);
  return assignments_of(trainer_of_text(text), text, path, context);
}

std::string torch_schedule(const std::string& schedule) {
  const auto found =
      std::ranges::find(plan::schedules(), schedule, &plan::ScheduleDescriptor::name);
  return found == plan::schedules().end() ? "" : found->torch_class;
}

void trainer::add_common(UnsupportedFields& unsupported_fields, const plan::Scenario& scenario) {
  unsupported_fields.add_if(
      !scenario.training.microbatch_lengths.empty(),
      "training.microbatch_lengths: all microbatches must have the same length");
  unsupported_fields.add_if(!scenario.pipeline.placement.empty(),
                            "pipeline.placement: the schedule determines the placement of stages");
  unsupported_fields.add_if(scenario.pipeline.schedule.own != nullptr,
                            fmt::format("pipeline.schedule={}: custom schedules are not supported",
                                        scenario.pipeline.schedule.label()));
}

void trainer::add_products(UnsupportedFields& unsupported_fields, const plan::Scenario& scenario) {
  const auto* const shape = scenario.model.find<plan::TransformerShape>();
  unsupported_fields.add_if(
      shape != nullptr && (shape->products == plan::ProductPrecision::Float8 ||
                           shape->products == plan::ProductPrecision::Float4),
      "model.product_precision: products with less than 16 bits are not supported");
}

const std::vector<int>& trainer::borders_of(const plan::Scenario& scenario) {
  const plan::PartitionChoice& partition = scenario.pipeline.partition;
  if (const auto* const method = std::get_if<std::string>(&partition))
    throw plan::InputError(fmt::format(
        "pipeline.partition={}: explicit stage boundaries are needed here, such as [0, 4, 8]",
        *method));
  return std::get<std::vector<int>>(partition);
}

std::string trainer::assignment(const std::string& field, const plan::Json& value) {
  return field + "=" + value.dump();
}

}  // namespace pipewright::models
