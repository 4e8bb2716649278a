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
      .summary = "Search the fastest plans of a training that fit a cluster",
      .options =
          {{.names = "scenario",
            .target = &options.scenario.file,
            .help =
                "A scenario's file: plans of its model on its ranks, by the costs of its layers",
            .value = "SCENARIO"},
           {.names = "--set",
            .target = &options.scenario.assignments,
            .help = "Override a field of the scenario; may be repeated",
            .value = "FIELD=VALUE",
            .repeated = true},
           {.names = "--costs",
            .target = &options.scenario.costs,
            .help = "Layer costs of the scenario from this file, not measured now",
            .value = "FILE"},
           {.names = "--model",
            .target = &options.model.name,
            .help =
                "A public model, such as llama3-70b, or a file: config.json of Hugging Face, or "
                "Megatron's arguments",
            .value = "NAME",
            .suggestions = plan::known_transformers()},
           {.names = "--as-is",
            .target = &options.model.as_is,
            .help = "Nothing is searched: the one plan that Megatron's arguments say, its time and "
                    "memory by rank"},
           {.names = "--cluster",
            .target = &options.cluster,
            .help = "A cluster's JSON file, such as scenarios/clusters/h100-sxm.json",
            .value = "FILE"},
           {.names = "--batch",
            .target = &options.model.batch,
            .help = "Samples of an iteration",
            .numbers = Numbers::Positive},
           {.names = "--gpus",
            .target = &options.gpus,
            .help = "So many of the cluster's, or more in nodes like its own; default: all",
            .numbers = Numbers::Positive},
           {.names = "--sequence",
            .target = &options.model.sequence,
            .help = "Tokens of a sample; default: 2048, or as many as the model has positions",
            .numbers = Numbers::Positive},
           sizes("--tensor", options.search.axes.tensor,
                 "Tensor sizes to try; default: all within a node, or the scenario's"),
           sizes("--pipeline", options.search.axes.pipeline,
                 "Pipeline sizes; default: all that divide"),
           sizes("--context", options.search.axes.context,
                 "Context sizes; default: 1, or the scenario's"),
           sizes("--expert", options.search.axes.expert,
                 "Expert sizes of a mixture; default: all that divide, or the scenario's"),
           {.names = "--schedule",
            .target = &options.search.axes.schedules,
            .help = "Schedules; of a scenario by default all that train; of a model " +
                    fmt::format("{}", fmt::join(models::usual_planned_schedules(), ",")),
            .value = "LIST",
            .suggestions = models::planned_schedules(),
            .separator = ','},
           {.names = "--partition",
            .target = &options.search.axes.partition,
            .help = "Stages of equal numbers of layers, or balanced with the head and, on nodes of "
                    "several kinds, by speed and memory; default: both, or of a scenario balanced, "
                    "with borders that are moved until no move helps",
            .value = "LIST",
            .choices = {"equal", "balanced"},
            .separator = ','},
           sizes("--chunks", options.search.axes.chunks,
                 "Stages per rank; default: all that divide, or the schedule's least, "
                 "twice and four times as many"),
           sizes("--microbatch", options.search.axes.microbatch,
                 "Samples of a microbatch; default: all, or the scenario's"),
           {.names = "--zero",
            .target = &options.search.axes.zero,
            .help = "ZeRO stages; default: 0,1,2,3, or the scenario's",
            .value = "LIST",
            .numbers = Numbers::NotNegative,
            .separator = ','},
           {.names = "--recompute",
            .target = &options.search.axes.recompute,
            .help = "Kinds of recomputation; default: all, or the scenario's",
            .value = "LIST",
            .choices = plan::recompute_modes(),
            .separator = ','},
           {.names = "--precision",
            .target = &options.model.precision,
            .help =
                "Of products and of what they keep of their inputs; fp8 and fp4 with "
                "parameters gathered in 8 bits, of which a device has two copies; default: bf16",
            .value = "TYPE",
            .choices = {"bf16", "fp8", "fp4"}},
           {.names = "--attention",
            .target = &options.model.attention,
            .help = "Whether scores are written to memory; default: fused",
            .value = "KIND",
            .choices = {"fused", "scores"}},
           {.names = "--sequence-parallel",
            .target = &options.search.axes.sequence_parallel,
            .help = "Whether tokens are cut where tensors are not; default: both, or as the "
                    "scenario has it",
            .value = "WHICH",
            .choices = {"yes", "no", "both"}},
           {.names = "--overlap",
            .target = &options.model.overlap,
            .help = "What goes beside compute: the sums of a stage's gradients, while others have "
                    "backwards to do; default: none. parameters and sums (of shards) no scenario "
                    "can say: --as-is times them",
            .value = "LIST",
            .choices = {"none", "gradients", "parameters", "sums", "all"},
            .separator = ','},
           {.names = "--top",
            .target = &options.search.top,
            .help = "So many plans",
            .numbers = Numbers::Positive,
            .shows_default = true},
           {.names = "--pareto",
            .target = &options.model.pareto,
            .help = "All plans than which none is faster with as little memory"},
           {.names = "--svg",
            .target = &options.model.svg,
            .help = "Draw them: time over memory",
            .value = "FILE"},
           {.names = "--regret",
            .target = &options.model.regret,
            .help = "Draw the cluster's constants so many times by their uncertainty: how much "
                    "longer the first plan then takes than the best of those shown",
            .value = "DRAWS",
            .numbers = Numbers::Positive},
           {.names = "--explain",
            .target = &options.model.explain,
            .help =
                "Instead of the table: what the plan of this number computes and holds, by rank",
            .value = "PLAN",
            .numbers = Numbers::Positive},
           {.names = "--failure-hours",
            .target = &options.model.failures.hours,
            .help = "Mean hours between failures of one GPU: how much of the time remains for "
                    "training with the first plan, and how often to save it",
            .value = "HOURS",
            .numbers = Numbers::Positive},
           {.names = "--write-rate",
            .target = &options.model.failures.write_rate,
            .help = "GB/s at which all GPUs together write a checkpoint",
            .value = "GB/S",
            .numbers = Numbers::Positive},
           {.names = "--restart-minutes",
            .target = &options.model.failures.restart_minutes,
            .help = "From a failure until training goes on",
            .value = "MINUTES",
            .numbers = Numbers::Positive,
            .shows_default = true},
           {.names = "--at",
            .target = &options.search.percentile.at,
            .help =
                "Choose by what so many iterations in a hundred stay below, drawn from --jitter",
            .value = "PERCENTILE",
            .choices = {"p50", "p95", "p99"}},
           {.names = "--jitter",
            .target = &options.search.percentile.jitter,
            .help = "What was recorded of several steps: a table (step, replica, rank, action, "
                    "seconds), or the folder of a run",
            .value = "FILE"},
           {.names = "--draws",
            .target = &options.search.percentile.draws,
            .help = "Draws of each of the leading plans; default: 1000",
            .numbers = Numbers::Positive},
           {.names = "--seed",
            .target = &options.search.percentile.seed,
            .help = "Of the draws; default: 0",
            .numbers = Numbers::NotNegative},
           {.names = "--exhaustive",
            .target = &options.model.exhaustive,
            .help = "Simulate every candidate that fits: the same plans, later"},
           {.names = "--replan",
            .target = &options.scenario.replan.is_asked,
            .help = "The scenario's training goes on, with the same bits: plans for what is left"},
           {.names = "--lost",
            .target = &options.scenario.replan.lost,
            .help = "Ranks that are gone",
            .value = "LIST",
            .numbers = Numbers::NotNegative,
            .separator = ','},
           {.names = "--slow",
            .target = &options.scenario.replan.slow,
            .help = "Ranks that got slower, such as 2=0.8",
            .value = "RANK=SPEED",
            .separator = ','},
           {.names = "--checkpoints",
            .target = &options.scenario.replan.checkpoints,
            .help = "Where the training has saved its steps",
            .value = "FOLDER"},
           {.names = "--step",
            .target = &options.scenario.replan.step,
            .help = "The step that it had reached",
            .numbers = Numbers::NotNegative},
           {.names = "-o,--out",
            .target = &options.search.out,
            .help = "Write the best plan's scenario, costs and schedule, and what other trainers "
                    "are told of it",
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
