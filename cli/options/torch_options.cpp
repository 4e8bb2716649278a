#include "options/torch_options.hpp"

#include <fmt/format.h>

namespace pipewright::cli {
namespace {

Option costs_option(std::string& costs) {
  return {.names = "--costs",
          .target = &costs,
          .help = "Read layer costs from this file instead of measuring them now",
          .value = "FILE"};
}

Option fresh_option(bool& fresh) {
  return {.names = "--fresh",
          .target = &fresh,
          .help = "Measure layers again, even if this machine has measured them before"};
}

Option verify_option(bool& verify) {
  return {.names = "--verify",
          .target = &verify,
          .help = "Train again without a pipeline and demand bit-identical results"};
}

/// Returns SCENARIO and the device options, followed by the command's other options.
template <class Options>
std::vector<Option> with_devices(Options& options, const std::vector<Option>& others) {
  DeviceOptions& device = options.device;
  std::vector<Option> all{
      {.names = "--device",
       .target = &device.device,
       .help = "The device on which ranks compute: cpu, or cuda for all GPUs of the machine",
       .choices = {"cpu", "cuda"},
       .shows_default = true},
      {.names = "--own-multiprocessors",
       .target = &device.own_multiprocessors,
       .help = "Give each rank that shares a GPU a separate part of its multiprocessors"},
  };
  all.insert(all.end(), others.begin(), others.end());
  all.push_back({.names = "--log",
                 .target = &options.log.subjects,
                 .help = "Log these subjects: job, schedule, transfers, collectives, data, "
                         "checkpoints or all, each followed by =info or =debug",
                 .value = "SUBJECTS"});
  all.push_back({.names = "--log-file",
                 .target = &options.log.file,
                 .help = "Write the log to this file instead of stderr; {rank} in its name is "
                         "replaced by the rank",
                 .value = "FILE"});
  return with_scenario(options.scenario, std::move(all));
}

Option timeout_option(TimeLimits& limits) {
  return {.names = "--timeout",
          .target = &limits.timeout_s,
          .help = "End the job after this many seconds without a heartbeat from a process",
          .numbers = Numbers::Positive,
          .shows_default = true};
}

Option stall_option(TimeLimits& limits) {
  return {.names = "--stall",
          .target = &limits.stall_s,
          .help = "End the job if no action ends for this many seconds while ranks wait; 0: never",
          .numbers = Numbers::NotNegative,
          .shows_default = true};
}

Option processes_option(bool& processes) {
  return {.names = "--processes",
          .target = &processes,
          .help = "Run each rank as a process on this machine instead of a thread"};
}

std::vector<Option> checkpoint_options(TrainOptions& options) {
  return {
      {.names = "--checkpoints",
       .target = &options.checkpoints,
       .help = "Save the training to this folder when it ends",
       .value = "FOLDER"},
      {.names = "--checkpoint-every",
       .target = &options.checkpoint_every,
       .help = "Also save a checkpoint every N steps; auto: at the interval that loses least time, "
               "given the duration of a checkpoint and --failure-hours",
       .value = "STEPS",
       .suggestions = {"auto"}},
      {.names = "--failure-hours",
       .target = &options.failure_hours,
       .help = "Mean time between failures of the whole job in hours, for --checkpoint-every auto",
       .value = "HOURS",
       .numbers = Numbers::Positive},
      {.names = "--keep",
       .target = &options.keep,
       .help = "Number of checkpoints to keep",
       .numbers = Numbers::Positive,
       .shows_default = true},
      {.names = "--resume",
       .target = &options.resume,
       .help = "Continue from the newest complete checkpoint, whatever plan wrote it"},
      {.names = "--dry-run",
       .target = &options.dry_run,
       .help = "Only check whether the newest checkpoint can be loaded here"},
      {.names = "--supervise",
       .target = &options.supervise,
       .help = "Restart from the newest checkpoint when a rank dies, stops or hangs. Under another "
               "launcher, which restarts the job itself, this is the same as --resume, and surplus "
               "processes wait as spares"},
      {.names = "--tries",
       .target = &options.tries,
       .help = "Give up after this many failures without a newer checkpoint in between",
       .numbers = Numbers::Positive,
       .shows_default = true},
      {.names = "--replan",
       .target = &options.replan,
       .help = "With --supervise: give up a rank that fails twice without a newer checkpoint in "
               "between, or that is persistently slow, and plan again for the remaining ranks; "
               "under another launcher, for as many ranks as it starts"},
      {.names = "--spares",
       .target = &options.spares,
       .help = "With --processes --supervise: number of spare places (LOCAL_RANK, and so GPUs) in "
               "addition to the ranks. A spare replaces a rank that would be given up, before the "
               "number of ranks is reduced",
       .numbers = Numbers::Positive},
  };
}

}  // namespace

Command describe_run(RunOptions& options) {
  return {.name = "run",
          .summary =
              "Run the whole loop: profile, partition, predict, train, compare; in one process or "
              "as a job",
          .options =
              with_devices(options, {costs_option(options.costs),
                                     fresh_option(options.fresh),
                                     {.names = "-o,--out",
                                      .target = &options.out,
                                      .help = "The folder of the run; default: runs/<name>-<time>",
                                      .value = "FOLDER"},
                                     verify_option(options.verify),
                                     processes_option(options.processes),
                                     timeout_option(options.limits),
                                     stall_option(options.limits)}),
          .examples =
              "Examples: pipewright run scenarios/gpt-text/scenario.json --set "
              "pipeline.schedule=gpipe --verify\n"
              "          pipewright run … --processes\n"
              "          torchrun --nproc-per-node 2 --no-python pipewright run …"};
}

Command describe_profile(ProfileOptions& options) {
  return {
      .name = "profile",
      .summary = "Measure the cost of each layer on this machine, or the speed of its links",
      .options = with_devices(
          options,
          {{.names = "-o,--out",
            .target = &options.out,
            .help = "Write the costs, or the cluster with the measured links, to this file",
            .value = "FILE"},
           {.names = "--kernels",
            .target = &options.kernels,
            .help = "Write the kernels that the device ran, below the actions that launched them: "
                    ".pwt, .json, .json.gz or .csv",
            .value = "FILE"},
           fresh_option(options.fresh),
           {.names = "--over",
            .target = &options.over_s,
            .help = fmt::format(
                "Measure for this many seconds, which also shows how the machine's speed drifts; "
                "0: until the times are stable (default: {} passes over the layers, at most {} s)",
                options.enough_passes, options.most_seconds),
            .numbers = Numbers::NotNegative},
           {.names = "--runtime",
            .target = &options.runtime,
            .help = "The runtime of the layers; torch also measures the overhead of torch's "
                    "pipeline runtime per action and message",
            .choices = {"pipewright", "torch"},
            .shows_default = true},
           {.names = "--python",
            .target = &options.python,
            .help = "A Python that has torch and the module pipewright, for --runtime torch",
            .value = "PROGRAM",
            .shows_default = true},
           {.names = "--links",
            .target = &options.links,
            .help = "Measure links instead of layers: between threads and between processes, or "
                    "those of the job that this process joins"},
           {.names = "--between",
            .target = &options.between,
            .help = "The links to measure on this machine",
            .choices = {"all", "threads", "processes"},
            .shows_default = true},
           {.names = "--within",
            .target = &options.within_s,
            .help =
                "Time limit for measuring links in seconds; larger sizes are omitted to meet it",
            .numbers = Numbers::Positive,
            .shows_default = true},
           timeout_option(options.limits)}),
      .examples =
          "Examples: pipewright profile scenarios/gpt-text/scenario.json -o costs.json\n"
          "          pipewright profile scenarios/gpt-text/scenario.json --links -o "
          "cluster.json"};
}

Command describe_train(TrainOptions& options) {
  std::vector<Option> own{
      costs_option(options.costs),
      fresh_option(options.fresh),
      verify_option(options.verify),
      processes_option(options.processes),
      timeout_option(options.limits),
      stall_option(options.limits),
      {.names = "--trace",
       .target = &options.trace,
       .help = "Write the timeline of the typical measured step",
       .value = "FILE"},
      {.names = "--kernels",
       .target = &options.kernels,
       .help = "Record every other step, and write the kernels of its actions: .pwt, .json, "
               ".json.gz or .csv",
       .value = "FILE"},
      {.names = "-o,--out",
       .target = &options.out,
       .help = "Write the plan, a line for each step and the timelines to this folder, as run does",
       .value = "FOLDER"},
  };
  for (Option& option : checkpoint_options(options))
    own.push_back(std::move(option));
  return {.name = "train",
          .summary = "Train with the scenario's plan; joins the job of torchrun, Slurm or mpirun",
          .options = with_devices(options, own),
          .examples =
              "Examples: pipewright train scenarios/gpt-text/scenario.json --set "
              "training.steps=20\n"
              "          pipewright train … --processes --checkpoints ckpt --checkpoint-every 10 "
              "--supervise\n"
              "          torchrun --nproc-per-node 2 --no-python pipewright train …"};
}

Command describe_save(SaveOptions& options) {
  return {.name = "save",
          .summary =
              "Export a trained model's weights for transformers (kind hf) or PyTorch (imported)",
          .options = with_scenario(
              options.scenario,
              {{.names = "--checkpoints",
                .target = &options.checkpoints,
                .help = "Read the newest complete checkpoint in this folder, as written by train",
                .value = "FOLDER",
                .required = true},
               {.names = "-o,--out",
                .target = &options.out,
                .help = "Write the weights to this folder; for hf also config.json and the "
                        "tokenizer of the model's folder",
                .value = "FOLDER",
                .required = true}}),
          .examples = "Example: pipewright save scenario.json --checkpoints ckpt -o tuned"};
}

Command describe_generate(GenerateOptions& options) {
  return {.name = "generate",
          .summary = "Generate tokens after prompts, with the scenario's ranks as threads",
          .options = with_scenario(
              options.scenario,
              {{.names = "--tokens",
                .target = &options.tokens,
                .help = "A prompt as token numbers, such as 5,11,2; may be repeated",
                .value = "TOKENS",
                .required = true,
                .repeated = true},
               {.names = "--checkpoints",
                .target = &options.checkpoints,
                .help = "Read the weights of the newest complete checkpoint in this folder; "
                        "default: the weights before training",
                .value = "FOLDER"},
               {.names = "--new-tokens",
                .target = &options.new_tokens,
                .help = "Maximum number of tokens to generate for each prompt",
                .numbers = Numbers::Positive,
                .shows_default = true},
               {.names = "--temperature",
                .target = &options.temperature,
                .help = "Divide the logits by this before sampling a token; 0: choose the most "
                        "likely token",
                .numbers = Numbers::NotNegative,
                .shows_default = true},
               {.names = "--top-k",
                .target = &options.top_k,
                .help = "Sample among this many of the most likely tokens; 0: among all",
                .numbers = Numbers::NotNegative,
                .shows_default = true},
               {.names = "--seed",
                .target = &options.seed,
                .help = "Seed of the sampling; default: training.seed"},
               {.names = "--stop",
                .target = &options.stop,
                .help = "Tokens that end a sequence, included as its last",
                .value = "TOKENS",
                .separator = ','}}),
          .examples =
              "Example: pipewright generate scenario.json --checkpoints ckpt --tokens "
              "5,11,2 --temperature 0.8 --top-k 40"};
}

}  // namespace pipewright::cli
