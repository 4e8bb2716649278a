#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/commands.hpp"
#include "commands/plan_options.hpp"
#include "exit_code.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/runs/run_of_transformer.hpp"
#include "pipewright/sim/planner/plan_files.hpp"
#include "pipewright/sim/planner/plan_search.hpp"
#include "print/console.hpp"
#include "print/plans_table.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {
namespace {

plan::RunRecompute recompute_of(const std::string& word) {
  if (word == "none")
    return plan::RunRecompute::None;
  return word == "full" ? plan::RunRecompute::Full : plan::RunRecompute::Selective;
}

/// By name, or from a file with its sizes; how that file cuts it is left out.
plan::TrainingRun sizes_of(const std::string& model) {
  plan::TrainingRun run;
  if (plan::set_known_model(run, model))
    return run;
  if (!std::filesystem::exists(model))
    throw plan::InputError(fmt::format(
        "--model: no model \"{}\" is known, and no file has that name{}; known are: {}", model,
        plan::did_you_mean(model, plan::known_models()), fmt::join(plan::known_models(), ", ")));
  plan::DescribedTransformer transformer = plan::read_transformer(model);
  transformer.sharding = {};
  run = plan::run_of(transformer);
  run.recompute = plan::RunRecompute::Unknown;
  return run;
}

plan::TrainingRun model_of(const PlanOptions& options, const plan::Cluster& cluster) {
  plan::TrainingRun run = sizes_of(options.model);
  const int devices = device_count(cluster);
  run.gpus = options.gpus == 0 ? devices : options.gpus;
  if (run.gpus > cluster.devices_per_node && run.gpus % cluster.devices_per_node != 0)
    throw plan::InputError(fmt::format(
        "--gpus: {} are not whole nodes of {}: {} or {} would be", run.gpus,
        cluster.devices_per_node, run.gpus / cluster.devices_per_node * cluster.devices_per_node,
        (run.gpus / cluster.devices_per_node + 1) * cluster.devices_per_node));
  run.global_batch = options.batch;
  run.sequence = options.sequence.value_or(2048);
  return run;
}

void write_plan(const std::filesystem::path& folder, const plan::Cluster& cluster,
                const sim::FoundPlan& plan) {
  std::filesystem::create_directories(folder);
  const plan::Scenario scenario = sim::scenario_of(cluster, plan);
  plan::write_file(folder / "scenario.json", to_json(scenario).dump(2) + "\n");
  plan::write_file(folder / "costs.json",
                   to_json(sim::layer_costs_of(cluster, plan)).dump(2) + "\n");
  plan::write_file(folder / "schedule.csv",
                   plan::to_csv(plan::make_schedule(request_of(scenario.pipeline))));
  if (const std::string arguments = sim::megatron_arguments(plan.run); !arguments.empty())
    plan::write_file(folder / "megatron.txt", arguments + "\n");
}

void require_model(const PlanOptions& options) {
  const auto refuse_if = [](bool wrong, const char* message) {
    if (wrong)
      throw plan::InputError(message);
  };
  refuse_if(options.model.empty(),
            "what is to be planned? Name a model (--model llama3-70b) or a scenario's file");
  refuse_if(options.cluster.empty(),
            "--cluster: a model needs a cluster, such as scenarios/clusters/h100-sxm.json");
  refuse_if(options.batch == 0, "--batch: a model needs the samples of an iteration");
  refuse_if(options.replan || !options.assignments.empty() || !options.costs.empty(),
            "--replan, --set and --costs are for a scenario's file, which trains here");
  refuse_if(tells_of_trouble(options), trouble_without_replan);
  refuse_if(!options.svg.empty() && !options.pareto,
            "--svg: draws time over memory, for which it needs --pareto");
}

/// What the search has no price for yet.
void require_planned_zero(const std::vector<int>& stages) {
  for (const int stage : stages)
    if (stage > 1)
      throw plan::InputError(
          fmt::format("--zero {}: plans have no ZeRO (0) or its first stage (1)", stage));
}

int plan_training(const PlanOptions& options) {
  require_planned_zero(options.zero);
  if (!options.scenario.empty())
    return plan_scenario(options);
  require_model(options);
  auto cluster = plan::cluster_from_json(plan::JsonDocument::read(options.cluster));
  // Nodes are alike: more of them than the file names are planned for as well.
  if (const int nodes = options.gpus / cluster.devices_per_node; nodes > cluster.nodes) {
    say(fmt::format("{} has {} nodes; this plan is for {} like them", options.cluster,
                    cluster.nodes, nodes));
    cluster.nodes = nodes;
  }
  sim::PlanSpace space{.model = model_of(options, cluster),
                       .tensor = options.tensor,
                       .pipeline = options.pipeline,
                       .expert = options.expert,
                       .chunks = options.chunks,
                       .microbatch = options.microbatch};
  if (!options.context.empty())
    space.context = options.context;
  if (!options.zero.empty())
    space.zero = options.zero;
  if (!options.schedules.empty())
    space.schedules = options.schedules;
  if (!options.recompute.empty())
    space.recompute.clear();
  for (const std::string& word : options.recompute)
    space.recompute.push_back(recompute_of(word));
  if (!options.partition.empty())
    space.stage_sizes.clear();
  for (const std::string& word : options.partition)
    space.stage_sizes.push_back(word == "equal" ? sim::StageSizes::Equal
                                                : sim::StageSizes::Balanced);
  catch_interrupts();
  ProgressLine line;
  const sim::PlanAnswer answer = sim::search_plans(
      cluster, space,
      {.most_plans = options.top,
       .pareto = options.pareto,
       .exhaustive = options.exhaustive,
       .progress = [&](std::size_t done, std::size_t candidates, const sim::FoundPlan* best) {
         line.show(fmt::format("planning: {} of {} candidates{}", done, candidates,
                               best == nullptr
                                   ? ""
                                   : fmt::format(", best so far {:.3f} s with {}",
                                                 best->iteration_s, words_of(best->run))));
         return !interrupted();
       }});
  line.clear();
  if (answer.candidates == 0)
    throw plan::InputError(fmt::format(
        "nothing divides a batch of {} among {} GPUs for {} layers and {} heads: no plan to look "
        "at",
        space.model.global_batch, space.model.gpus, space.model.layers, space.model.heads));
  if (!options.out.empty() && !answer.plans.empty())
    write_plan(options.out, cluster, answer.plans.front());
  if (!options.svg.empty() && !answer.plans.empty())
    plan::write_file(options.svg, draw::to_svg(draw::chart_scene(chart_of(answer))));
  std::optional<sim::Regret> regret;
  if (options.regret > 0 && !answer.plans.empty())
    regret = sim::regret_of(cluster, answer.plans, options.regret);
  if (options.explain > static_cast<int>(answer.plans.size()) && !answer.interrupted)
    throw plan::InputError(
        fmt::format("--explain {}: {} plans were found", options.explain, answer.plans.size()));
  if (options.json)
    fmt::print("{}\n", to_json(cluster, answer, regret).dump(2));
  else if (options.explain > 0 && !answer.interrupted)
    fmt::print("{}",
               plan_explained(cluster, answer, static_cast<std::size_t>(options.explain - 1)));
  else
    fmt::print("{}", plans_table(cluster, answer, regret));
  if (answer.interrupted)
    return Interrupted;
  return answer.plans.empty() ? NegativeAnswer : Done;
}

Command describe(PlanOptions& options) {
  const auto sizes = [](const char* names, std::vector<int>& target, const char* help) {
    return Option{.names = names,
                  .target = &target,
                  .help = help,
                  .value = "LIST",
                  .numbers = Numbers::Positive,
                  .separator = ','};
  };
  return {
      .name = "plan",
      .summary = "Search the fastest plans of a training that fit a cluster",
      .options =
          {{.names = "scenario",
            .target = &options.scenario,
            .help =
                "A scenario's file: plans of its model on its ranks, by the costs of its layers",
            .value = "SCENARIO"},
           {.names = "--set",
            .target = &options.assignments,
            .help = "Override a field of the scenario; may be repeated",
            .value = "FIELD=VALUE",
            .repeated = true},
           {.names = "--costs",
            .target = &options.costs,
            .help = "Layer costs of the scenario from this file, not measured now",
            .value = "FILE"},
           {.names = "--model",
            .target = &options.model,
            .help =
                "A public model, such as llama3-70b, or a file: config.json of Hugging Face, or "
                "Megatron's arguments",
            .value = "NAME",
            .suggestions = plan::known_models()},
           {.names = "--cluster",
            .target = &options.cluster,
            .help = "A cluster's JSON file, such as scenarios/clusters/h100-sxm.json",
            .value = "FILE"},
           {.names = "--batch",
            .target = &options.batch,
            .help = "Samples of an iteration",
            .numbers = Numbers::Positive},
           {.names = "--gpus",
            .target = &options.gpus,
            .help = "So many of the cluster's, or more in nodes like its own; default: all",
            .numbers = Numbers::Positive},
           {.names = "--sequence",
            .target = &options.sequence,
            .help = "Tokens of a sample; default: 2048",
            .numbers = Numbers::Positive},
           sizes("--tensor", options.tensor, "Tensor sizes to try; default: all within a node"),
           sizes("--pipeline", options.pipeline, "Pipeline sizes; default: all that divide"),
           sizes("--context", options.context, "Context sizes; default: 1"),
           sizes("--expert", options.expert, "Expert sizes of a mixture; default: all that divide"),
           {.names = "--schedule",
            .target = &options.schedules,
            .help = "Schedules; of a scenario by default all that train; of a model " +
                    fmt::format("{}", fmt::join(sim::PlanSpace{}.schedules, ",")),
            .value = "LIST",
            .suggestions = plan::planned_schedules(),
            .separator = ','},
           {.names = "--partition",
            .target = &options.partition,
            .help = "Stages of equal numbers of layers, or balanced with the head; default: both",
            .value = "LIST",
            .choices = {"equal", "balanced"},
            .separator = ','},
           sizes("--chunks", options.chunks, "Stages per rank; default: all that divide"),
           sizes("--microbatch", options.microbatch, "Samples of a microbatch; default: all"),
           {.names = "--zero",
            .target = &options.zero,
            .help = "ZeRO stages; default: 0,1",
            .value = "LIST",
            .numbers = Numbers::NotNegative,
            .separator = ','},
           {.names = "--recompute",
            .target = &options.recompute,
            .help = "Kinds of recomputation; default: all",
            .value = "LIST",
            .choices = {"none", "selective", "full"},
            .separator = ','},
           {.names = "--top",
            .target = &options.top,
            .help = "So many plans",
            .numbers = Numbers::Positive,
            .shows_default = true},
           {.names = "--pareto",
            .target = &options.pareto,
            .help = "All plans than which none is faster with as little memory"},
           {.names = "--svg",
            .target = &options.svg,
            .help = "Draw them: time over memory",
            .value = "FILE"},
           {.names = "--regret",
            .target = &options.regret,
            .help = "Draw the cluster's constants so many times by their uncertainty: how much "
                    "longer the first plan then takes than the best of those shown",
            .value = "DRAWS",
            .numbers = Numbers::Positive},
           {.names = "--explain",
            .target = &options.explain,
            .help =
                "Instead of the table: what the plan of this number computes and holds, by rank",
            .value = "PLAN",
            .numbers = Numbers::Positive},
           {.names = "--exhaustive",
            .target = &options.exhaustive,
            .help = "Simulate every candidate that fits: the same plans, later"},
           {.names = "--replan",
            .target = &options.replan,
            .help = "The scenario's training goes on, with the same bits: plans for what is left"},
           {.names = "--lost",
            .target = &options.lost,
            .help = "Ranks that are gone",
            .value = "LIST",
            .numbers = Numbers::NotNegative,
            .separator = ','},
           {.names = "--slow",
            .target = &options.slow,
            .help = "Ranks that got slower, such as 2=0.8",
            .value = "RANK=SPEED",
            .separator = ','},
           {.names = "--checkpoints",
            .target = &options.checkpoints,
            .help = "Where the training has saved its steps",
            .value = "FOLDER"},
           {.names = "--step",
            .target = &options.step,
            .help = "The step that it had reached",
            .numbers = Numbers::NotNegative},
           {.names = "-o,--out",
            .target = &options.out,
            .help = "Write the best plan's scenario, costs, schedule and Megatron arguments",
            .value = "FOLDER"},
           {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples =
          "Examples: pipewright plan --model llama3-70b --cluster "
          "scenarios/clusters/h100-sxm.json --gpus 64 --batch 512 --sequence 8192 -o plan\n"
          "          pipewright plan scenarios/gpt-text/scenario.json --costs costs.json\n"
          "          pipewright plan SCENARIO --costs costs.json --replan --lost 1 --checkpoints "
          "ckpt -o next"};
}

}  // namespace

Command plan_command() { return make_command(describe, plan_training); }

}  // namespace pipewright::cli
