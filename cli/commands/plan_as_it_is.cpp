#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands/plan_options.hpp"
#include "exit_code.hpp"
#include "pipewright/models/trainers/as_it_is.hpp"
#include "pipewright/plan/cluster/device_kind.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "print/as_it_is_table.hpp"
#include "print/console.hpp"

namespace pipewright::cli {
namespace {

/// Splits "other_args is "use-megatron-fsdp": why" into the option and the reason.
AsItIsRefusal memory_refusal(const std::string& message) {
  constexpr std::string_view begin = "other_args is \"";
  const std::size_t end = message.find("\": ");
  if (!message.starts_with(begin) || end == std::string::npos)
    return {.part = "memory", .option = {}, .reason = message};
  return {.part = "memory",
          .option = "--" + message.substr(begin.size(), end - begin.size()),
          .reason = message.substr(end + 3)};
}

std::vector<AsItIsRefusal> refusals(const models::DescribedTransformer& told,
                                    const search::Forecast& forecast) {
  std::vector<AsItIsRefusal> refused;
  if (!forecast.time_refused.empty())
    refused.push_back({.part = "time", .option = {}, .reason = forecast.time_refused});
  if (!forecast.memory_refused.empty())
    refused.push_back(memory_refusal(forecast.memory_refused));
  for (const models::UncountedOption& each : told.uncounted)
    refused.push_back({.part = "option", .option = each.option, .reason = each.reason});
  return refused;
}

plan::Cluster cluster_of(const PlanOptions& options) {
  const auto cluster = plan::cluster_from_json(plan::JsonDocument::read(options.cluster));
  return options.gpus == 0 ? cluster : with_nodes_for(cluster, options.gpus, "--gpus");
}

}  // namespace

int plan_as_it_is(const PlanOptions& options) {
  const plan::Cluster cluster = cluster_of(options);
  const models::DescribedTransformer told =
      models::read_transformer(options.model.name, options.model.sequence);
  if (told.options.implementation.empty())
    throw plan::InputError(
        fmt::format("{}: --as-is needs Megatron's arguments, as a script or a YAML file: a "
                    "config.json has no parallelism",
                    options.model.name));
  if (options.model.sequence.value_or(told.training.sequence) != told.training.sequence)
    throw plan::InputError(fmt::format("--sequence {}: --as-is keeps the arguments' own, {}",
                                       *options.model.sequence, told.training.sequence));
  const models::MeasuredRun run = models::run_as_it_is(
      told, options.model.name, options.gpus == 0 ? device_count(cluster) : options.gpus,
      plan::device_kind(cluster.device.name));
  const std::vector<search::Forecast> forecasts =
      search::forecast(search::as_it_is(cluster), {run});
  const search::Forecast& forecast = forecasts.front();
  AsItIs plan{.cluster = cluster, .told = told, .run = run, .forecast = forecast};
  plan.ranks = forecast.time ? search::rank_times(cluster, run) : search::rank_stages(run);
  plan.refused = refusals(told, forecast);
  if (forecast.memory_refused.empty())
    plan.needs = search::memory_of_run(run, run.cut, forecast);
  if (options.json)
    fmt::print("{}\n", to_json(plan).dump(2));
  else
    fmt::print("{}", as_it_is_table(plan));
  const bool is_answered = forecast.time || forecast.memory_refused.empty();
  return is_answered && plan.fits() ? Done : NegativeAnswer;
}

}  // namespace pipewright::cli
