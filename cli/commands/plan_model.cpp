#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/plan_at.hpp"
#include "commands/plan_options.hpp"
#include "commands/trainer_files.hpp"
#include "exit_code.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/plan/cluster/goodput.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/search/planner/plan_files.hpp"
#include "pipewright/search/planner/plan_search.hpp"
#include "print/console.hpp"
#include "print/model_table.hpp"
#include "print/plans_table.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {
namespace {

/// Returns the cluster with enough nodes for the GPUs. Nodes are equal, so plans for more nodes
/// than the file has are possible.
plan::Cluster planned_cluster(const PlanOptions& options) {
  const auto cluster = plan::cluster_from_json(plan::JsonDocument::read(options.cluster));
  const plan::Cluster planned = with_nodes_for(cluster, options.gpus, "--gpus");
  if (planned.nodes > cluster.nodes)
    say(fmt::format("{} has {} nodes; this plan is for {} such nodes", options.cluster,
                    cluster.nodes, planned.nodes));
  return planned;
}

/// Sets precision and attention as on the command line, or else as Megatron's arguments have them.
void set_kernels(search::PlanSpace& space, const ModelOptions& options,
                 const models::DescribedTransformer& told) {
  using P = plan::ProductPrecision;
  const std::string& precision =
      options.precision.empty() ? told.options.precision : options.precision;
  space.training.precision = precision.starts_with("fp8")   ? P::Float8
                             : precision.starts_with("fp4") ? P::Float4
                                                            : P::Half;
  if (!options.attention.empty())
    space.training.attention =
        options.attention == "scores" ? plan::AttentionKind::Scores : plan::AttentionKind::Fused;
  space.overlaps_gradients =
      std::ranges::find(options.overlap, "gradients") != options.overlap.end();
}

search::PlanSpace space_of(const PlanOptions& options, const plan::Cluster& cluster) {
  const models::DescribedTransformer told =
      models::transformer_named(options.model.name, options.model.sequence);
  say_reading(told, options.model.name);
  search::PlanSpace space{axes_of(options.search.axes), told.training,
                          options.gpus == 0 ? device_count(cluster) : options.gpus};
  space.training.batch = options.model.batch;
  set_kernels(space, options.model, told);
  return space;
}

search::PlanAnswer searched(const PlanOptions& options, const plan::Cluster& cluster,
                            const search::PlanSpace& space, const std::optional<PlanAt>& at) {
  catch_interrupts();
  ProgressLine line;
  const auto show = [&](std::size_t decided, std::size_t candidates,
                        const search::FoundPlan* best) {
    line.show(progress_words(decided, candidates,
                             best == nullptr ? ""
                                             : fmt::format("{:.3f} s with {}", best->iteration_s,
                                                           plan_words(space.training, *best))));
    return !interrupted();
  };
  search::PlanAnswer answer = search::search_plans(cluster, space,
                                                   {.most_plans = plans_to_find(options.search, at),
                                                    .pareto = options.model.pareto,
                                                    .exhaustive = options.model.exhaustive,
                                                    .progress = show});
  line.clear();
  search::require_candidates(space, answer);
  if (at)
    choose_at(answer.plans, options.search.top, [&](const search::FoundPlan& plan) {
      const plan::Scenario scenario = search::scenario_of(plan.cluster, space.training, plan.cut);
      return seconds_at(*at, scenario,
                        models::transformer_costs(scenario.cluster, space.training, plan.cut));
    });
  if (options.model.explain > static_cast<int>(answer.plans.size()) && !answer.interrupted)
    throw plan::InputError(fmt::format("--explain {}: {} plans were found", options.model.explain,
                                       answer.plans.size()));
  return answer;
}

/// Returns the goodput with checkpoints. A checkpoint has, for each parameter, 2 bytes of weights
/// and the 12 of AdamW's master copy and moments.
KeptTime kept_time(const FailureOptions& options, const plan::TransformerConfig& model, int gpus) {
  constexpr std::int64_t bytes_of_parameter = 14;
  KeptTime kept{.checkpoint = plan::Bytes{plan::parameters_of(model)} * bytes_of_parameter};
  kept.costs = {
      .checkpoint = {static_cast<double>(kept.checkpoint.value) / (1e9 * options.write_rate)},
      .restart = {60 * options.restart_minutes},
      .between_failures = plan::between_failures({3600 * options.hours}, gpus)};
  kept.interval = plan::best_checkpoint_interval(kept.costs);
  kept.share = plan::goodput(kept.costs, kept.interval);
  for (const double figure : {kept.costs.checkpoint.value, kept.costs.between_failures.value,
                              kept.interval.value, kept.share})
    if (!std::isfinite(figure))
      throw plan::InputError(
          fmt::format("--failure-hours {}, --write-rate {} and --restart-minutes {} give no finite "
                      "time between checkpoints: use less extreme values",
                      options.hours, options.write_rate, options.restart_minutes));
  return kept;
}

void write_plan(const std::filesystem::path& folder, const plan::TransformerTraining& training,
                const search::FoundPlan& plan) {
  std::filesystem::create_directories(folder);
  const plan::Scenario scenario = search::scenario_of(plan.cluster, training, plan.cut);
  plan::write_file(folder / "scenario.json", to_json(scenario).dump(2) + "\n");
  plan::write_file(
      folder / "costs.json",
      to_json(models::transformer_costs(scenario.cluster, training, plan.cut)).dump(2) + "\n");
  plan::write_file(folder / "schedule.csv",
                   plan::to_csv(plan::make_schedule(request_of(scenario.pipeline))));
  write_trainer_files(folder, scenario);
}

void print(const PlanOptions& options, const PlansFound& found) {
  if (options.json)
    fmt::print("{}\n", to_json(found).dump(2));
  else if (options.model.explain > 0 && !found.answer.interrupted)
    fmt::print("{}", plan_explained(found, static_cast<std::size_t>(options.model.explain - 1)));
  else
    fmt::print("{}", plans_table(found));
}

}  // namespace

int plan_model(const PlanOptions& options) {
  const plan::Cluster cluster = planned_cluster(options);
  const search::PlanSpace space = space_of(options, cluster);
  if (const int predictions = space.training.model.predictions; predictions > 0)
    say(fmt::format(
        "{}: these plans do not include the time and memory of its multi-token-prediction "
        "modules ({})",
        options.model.name, predictions));
  const search::PlanAnswer answer =
      searched(options, cluster, space, plan_at(options.search.percentile));
  PlansFound found{.cluster = cluster, .training = space.training, .answer = answer};
  found.at = options.search.percentile.at;
  if (!answer.plans.empty()) {
    if (!options.search.out.empty())
      write_plan(options.search.out, space.training, answer.plans.front());
    if (!options.model.svg.empty())
      plan::write_file(options.model.svg, draw::to_svg(draw::chart_scene(chart_of(found))));
    if (options.model.failures.hours > 0)
      found.kept = kept_time(options.model.failures, space.training.model,
                             answer.plans.front().cut.devices());
    if (options.model.regret > 0)
      found.regret = search::regret_of(cluster, space.training, answer.plans, options.model.regret);
  }
  print(options, found);
  if (answer.interrupted)
    return Interrupted;
  return answer.plans.empty() ? NegativeAnswer : Done;
}

}  // namespace pipewright::cli
