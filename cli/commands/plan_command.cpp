#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/commands.hpp"
#include "commands/plan_options.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "pipewright/search/planner/plan_search.hpp"

namespace pipewright::cli {
namespace {

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
      .summary = "Find the fastest plans of a training that fit a cluster",
      .options =
          {{.names = "scenario",
            .target = &options.scenario.file,
            .help = "A scenario file: plans its model on its ranks, with the costs of its layers",
            .value = "SCENARIO"},
           {.names = "--set",
            .target = &options.scenario.assignments,
            .help = "Override a field of the scenario; may be repeated",
            .value = "FIELD=VALUE",
            .repeated = true},
           {.names = "--costs",
            .target = &options.scenario.costs,
            .help =
                "Read the layer costs of the scenario from this file instead of measuring them now",
            .value = "FILE"},
           {.names = "--model",
            .target = &options.model.name,
            .help = "A public model, such as llama3-70b, or a file: config.json of Hugging Face, "
                    "or Megatron's arguments",
            .value = "NAME",
            .suggestions = plan::known_transformers()},
           {.names = "--as-is",
            .target = &options.model.as_is,
            .help = "Predict only the plan that Megatron's arguments describe: its time and memory "
                    "by rank"},
           {.names = "--cluster",
            .target = &options.cluster,
            .help = "A cluster's JSON file, such as scenarios/clusters/h100-sxm.json",
            .value = "FILE"},
           {.names = "--batch",
            .target = &options.model.batch,
            .help = "Number of samples per iteration",
            .numbers = Numbers::Positive},
           {.names = "--gpus",
            .target = &options.gpus,
            .help = "Number of GPUs; nodes are added if the cluster has too few; default: all of "
                    "the cluster's",
            .numbers = Numbers::Positive},
           {.names = "--sequence",
            .target = &options.model.sequence,
            .help = "Number of tokens per sample; default: Megatron's --seq-length, or 2048, or "
                    "fewer if the model has fewer positions",
            .numbers = Numbers::Positive},
           sizes("--tensor", options.search.axes.tensor,
                 "Tensor-parallel sizes to try; default: all within a node, or the scenario's"),
           sizes("--pipeline", options.search.axes.pipeline,
                 "Pipeline-parallel sizes; default: all that divide evenly"),
           sizes("--context", options.search.axes.context,
                 "Context-parallel sizes; default: 1, or the scenario's"),
           sizes("--expert", options.search.axes.expert,
                 "Expert-parallel sizes of a mixture of experts; default: all that divide evenly, "
                 "or the scenario's"),
           {.names = "--schedule",
            .target = &options.search.axes.schedules,
            .help = "Schedules; default for a scenario: all that train; for a model: " +
                    fmt::format("{}", fmt::join(models::usual_planned_schedules(), ",")),
            .value = "LIST",
            .suggestions = models::planned_schedules(),
            .separator = ','},
           {.names = "--partition",
            .target = &options.search.axes.partition,
            .help =
                "equal: stages with equal numbers of layers; balanced: stages that also balance "
                "the head and, on nodes of several kinds, speed and memory; default: both; for a "
                "scenario balanced, with boundaries that are moved until no move helps",
            .value = "LIST",
            .choices = {"equal", "balanced"},
            .separator = ','},
           sizes("--chunks", options.search.axes.chunks,
                 "Numbers of stages per rank; default: all that divide evenly; for a scenario the "
                 "schedule's smallest number, twice and four times as many"),
           sizes("--microbatch", options.search.axes.microbatch,
                 "Numbers of samples per microbatch; default: all, or the scenario's"),
           {.names = "--zero",
            .target = &options.search.axes.zero,
            .help = "ZeRO stages; default: 0,1,2,3, or the scenario's",
            .value = "LIST",
            .numbers = Numbers::NotNegative,
            .separator = ','},
           {.names = "--recompute",
            .target = &options.search.axes.recompute,
            .help = "Modes of recomputation; default: all, or the scenario's",
            .value = "LIST",
            .choices = plan::recompute_modes(),
            .separator = ','},
           {.names = "--precision",
            .target = &options.model.precision,
            .help = "The precision of matrix products and of their saved inputs; fp8 and fp4 "
                    "all-gather parameters in 8 bits, of which a device has two copies; default: "
                    "that of Megatron's arguments, or bf16",
            .value = "TYPE",
            .choices = {"bf16", "fp8", "fp4"}},
           {.names = "--attention",
            .target = &options.model.attention,
            .help = "scores: attention scores are written to memory; fused: they are not; default: "
                    "that of Megatron's arguments, or fused",
            .value = "KIND",
            .choices = {"fused", "scores"}},
           {.names = "--sequence-parallel",
            .target = &options.search.axes.sequence_parallel,
            .help = "Use sequence parallelism; default: both, or the scenario's",
            .value = "WHICH",
            .choices = {"yes", "no", "both"}},
           {.names = "--overlap",
            .target = &options.model.overlap,
            .help = "Communication that overlaps with compute; default: none. gradients: a stage's "
                    "gradients are reduced while other stages have backwards to do. parameters and "
                    "sums (tensor-parallel all-reduces) need --as-is",
            .value = "LIST",
            .choices = {"none", "gradients", "parameters", "sums", "all"},
            .separator = ','},
           {.names = "--top",
            .target = &options.search.top,
            .help = "Number of plans to show",
            .numbers = Numbers::Positive,
            .shows_default = true},
           {.names = "--pareto",
            .target = &options.model.pareto,
            .help = "Show the time-memory Pareto front instead of the fastest plans"},
           {.names = "--svg",
            .target = &options.model.svg,
            .help = "Draw the Pareto front to this file",
            .value = "FILE"},
           {.names = "--regret",
            .target = &options.model.regret,
            .help = "Sample the cluster's constants this many times by their uncertainty, and show "
                    "how much longer the first plan then takes than the fastest of those shown",
            .value = "DRAWS",
            .numbers = Numbers::Positive},
           {.names = "--explain",
            .target = &options.model.explain,
            .help = "Instead of the table, show the compute and the memory of this plan by rank",
            .value = "PLAN",
            .numbers = Numbers::Positive},
           {.names = "--failure-hours",
            .target = &options.model.failures.hours,
            .help = "Mean time between failures of one GPU in hours: shows the goodput of the "
                    "first plan, and its best checkpoint interval",
            .value = "HOURS",
            .numbers = Numbers::Positive},
           {.names = "--write-rate",
            .target = &options.model.failures.write_rate,
            .help = "Rate in GB/s at which all GPUs together write a checkpoint",
            .value = "GB/S",
            .numbers = Numbers::Positive},
           {.names = "--restart-minutes",
            .target = &options.model.failures.restart_minutes,
            .help = "Minutes from a failure until training continues",
            .value = "MINUTES",
            .numbers = Numbers::Positive,
            .shows_default = true},
           {.names = "--at",
            .target = &options.search.percentile.at,
            .help = "Choose plans by this percentile of the iteration time, sampled from --jitter",
            .value = "PERCENTILE",
            .choices = {"p50", "p95", "p99"}},
           {.names = "--jitter",
            .target = &options.search.percentile.jitter,
            .help = "Recorded steps: a table (step, replica, rank, action, seconds), or the folder "
                    "of a run",
            .value = "FILE"},
           {.names = "--draws",
            .target = &options.search.percentile.draws,
            .help = "Number of samples for each of the leading plans; default: 1000",
            .numbers = Numbers::Positive},
           {.names = "--seed",
            .target = &options.search.percentile.seed,
            .help = "Seed of the samples; default: 0",
            .numbers = Numbers::NotNegative},
           {.names = "--exhaustive",
            .target = &options.model.exhaustive,
            .help = "Simulate every candidate that fits: gives the same plans, more slowly"},
           {.names = "--replan",
            .target = &options.scenario.replan.is_asked,
            .help = "Continue the scenario's training with the same bits: plan for the remaining "
                    "devices"},
           {.names = "--lost",
            .target = &options.scenario.replan.lost,
            .help = "Ranks that are lost",
            .value = "LIST",
            .numbers = Numbers::NotNegative,
            .separator = ','},
           {.names = "--slow",
            .target = &options.scenario.replan.slow,
            .help = "Ranks that are slower, and their relative speed, such as 2=0.8",
            .value = "RANK=SPEED",
            .separator = ','},
           {.names = "--checkpoints",
            .target = &options.scenario.replan.checkpoints,
            .help = "The folder of the training's checkpoints",
            .value = "FOLDER"},
           {.names = "--step",
            .target = &options.scenario.replan.step,
            .help = "The step that the training had reached",
            .numbers = Numbers::NotNegative},
           {.names = "-o,--out",
            .target = &options.search.out,
            .help = "Write the best plan's scenario, costs and schedule, and its configuration for "
                    "other trainers, to this folder",
            .value = "FOLDER"},
           {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples =
          "Examples: pipewright plan --model llama3-70b --cluster "
          "scenarios/clusters/h100-sxm.json --gpus 64 --batch 512 --sequence 8192 -o plan\n"
          "          pipewright plan --model ARGS.yaml --cluster scenarios/clusters/h100-sxm.json "
          "--gpus 64 --as-is\n"
          "          pipewright plan scenarios/gpt-text/scenario.json --costs costs.json\n"
          "          pipewright plan SCENARIO --costs costs.json --replan --lost 1 --checkpoints "
          "ckpt -o next"};
}

int plan_training(const PlanOptions& options) {
  PlanOptions told = options, plain;
  require_fitting(options, given_options(describe(told), describe(plain)));
  if (options.model.as_is)
    return plan_as_it_is(options);
  return options.scenario.file.empty() ? plan_model(options) : plan_scenario(options);
}

}  // namespace

Command plan_command() { return make_command(describe, plan_training); }

}  // namespace pipewright::cli
