#include "options/torch_options.hpp"

namespace pipewright::cli {
namespace {

Option costs_option(std::string& costs) {
  return {.names = "--costs",
          .target = &costs,
          .help = "Layer costs from this file, not measured now",
          .value = "FILE"};
}

Option fresh_option(bool& fresh) {
  return {.names = "--fresh",
          .target = &fresh,
          .help = "Measure layers again that were measured here before"};
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
       .help = "Where ranks compute: cpu or cuda, spread over all GPUs",
       .choices = {"cpu", "cuda"},
       .shows_default = true},
      {.names = "--own-multiprocessors",
       .target = &device.own_multiprocessors,
       .help = "Ranks that share a GPU: each on its part of the multiprocessors alone"},
  };
  all.insert(all.end(), others.begin(), others.end());
  all.push_back({.names = "--log",
                 .target = &options.log.subjects,
                 .help = "Tell what goes on inside: job, schedule, transfers, collectives, data, "
                         "checkpoints or all, each =info or =debug",
                 .value = "SUBJECTS"});
  all.push_back({.names = "--log-file",
                 .target = &options.log.file,
                 .help = "Where to, not to stderr; {rank} in its name stands for each rank",
                 .value = "FILE"});
  return with_scenario(options.scenario, std::move(all));
}

Option timeout_option(TimeLimits& limits) {
  return {.names = "--timeout",
          .target = &limits.timeout_s,
          .help = "Seconds without a sign of life from a process after which the job ends",
          .numbers = Numbers::Positive,
          .shows_default = true};
}

Option stall_option(TimeLimits& limits) {
  return {.names = "--stall",
          .target = &limits.stall_s,
          .help = "Seconds after which the job ends when no action ends and ranks wait; 0: never",
          .numbers = Numbers::NotNegative,
          .shows_default = true};
}

Option processes_option(bool& processes) {
  return {.names = "--processes",
          .target = &processes,
          .help = "One process per rank on this machine, not one thread"};
}

std::vector<Option> checkpoint_options(TrainOptions& options) {
  return {
      {.names = "--checkpoints",
       .target = &options.checkpoints,
       .help = "Save the training here, at its end",
       .value = "FOLDER"},
      {.names = "--checkpoint-every",
       .target = &options.checkpoint_every,
       .help = "Also save it every N steps; auto: as often as loses least, by the time that a "
               "checkpoint takes and --failure-hours",
       .value = "STEPS",
       .suggestions = {"auto"}},
      {.names = "--failure-hours",
       .target = &options.failure_hours,
       .help = "Mean hours between failures of the whole job, for --checkpoint-every auto",
       .value = "HOURS",
       .numbers = Numbers::Positive},
      {.names = "--keep",
       .target = &options.keep,
       .help = "Checkpoints that stay",
       .numbers = Numbers::Positive,
       .shows_default = true},
      {.names = "--resume",
       .target = &options.resume,
       .help = "Go on from the newest whole checkpoint, by whatever plan it was written"},
      {.names = "--dry-run",
       .target = &options.dry_run,
       .help = "Only say whether the newest checkpoint can be loaded here"},
      {.names = "--supervise",
       .target = &options.supervise,
       .help = "Go on from the newest checkpoint by itself when a rank dies, stops or hangs; under "
               "another launcher, which starts it anew, the same as --resume, and processes that "
               "are too many stand by"},
      {.names = "--tries",
       .target = &options.tries,
       .help = "Failures without a newer checkpoint in between that end it",
       .numbers = Numbers::Positive,
       .shows_default = true},
      {.names = "--replan",
       .target = &options.replan,
       .help = "With --supervise: a rank that is lost twice without a newer checkpoint in between, "
               "or is slow for good, is given up, and so many ranks as are left plan anew; under "
               "another launcher, as many as it has started"},
      {.names = "--spares",
       .target = &options.spares,
       .help =
           "With --processes --supervise: so many places (LOCAL_RANK, so GPUs) more than ranks; "
           "one of them comes in where a rank would be given up, before there are fewer",
       .numbers = Numbers::Positive},
  };
}

}  // namespace

Command describe_run(RunOptions& options) {
  return {
      .name = "run",
      .summary =
          "The whole loop: profile, partition, predict, train, compare; alone, or as a "
          "job",
      .options = with_devices(options, {costs_option(options.costs),
                                        fresh_option(options.fresh),
                                        {.names = "-o,--out",
                                         .target = &options.out,
                                         .help = "The run directory; default runs/<name>-<time>",
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
  return {.name = "profile",
          .summary = "Measure what each layer costs on this machine, or what its links take",
          .options = with_devices(
              options, {{.names = "-o,--out",
                         .target = &options.out,
                         .help = "Write the costs, or the cluster with the measured "
                                 "links, to this file",
                         .value = "FILE"},
                        {.names = "--kernels",
                         .target = &options.kernels,
                         .help = "Write what the device ran, kernel by kernel, below the "
                                 "actions that asked for it: .pwt, .json, .json.gz or "
                                 ".csv",
                         .value = "FILE"},
                        fresh_option(options.fresh),
                        {.names = "--over",
                         .target = &options.over_s,
                         .help = "Measure for so many seconds, which also shows how the "
                                 "machine's speed drifts; 0: until times lie near each "
                                 "other",
                         .numbers = Numbers::NotNegative,
                         .shows_default = true},
                        {.names = "--runtime",
                         .target = &options.runtime,
                         .help = "What runs the layers: with torch, also what torch's pipeline "
                                 "runtime takes for actions and messages",
                         .choices = {"pipewright", "torch"},
                         .shows_default = true},
                        {.names = "--python",
                         .target = &options.python,
                         .help = "That has torch and the module pipewright, for --runtime torch",
                         .value = "PROGRAM",
                         .shows_default = true},
                        {.names = "--links",
                         .target = &options.links,
                         .help = "Measure links, not layers: between threads, and "
                                 "between processes, or those of the job that it joins"},
                        {.names = "--between",
                         .target = &options.between,
                         .help = "Of the links on this machine, those",
                         .choices = {"all", "threads", "processes"},
                         .shows_default = true},
                        {.names = "--within",
                         .target = &options.within_s,
                         .help = "Seconds that links may take; larger sizes are left "
                                 "out for it",
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
       .help = "Write the typical step as measured",
       .value = "FILE"},
      {.names = "--kernels",
       .target = &options.kernels,
       .help = "Record every other step, and write what its actions ran, kernel by kernel: .pwt, "
               ".json, .json.gz or .csv",
       .value = "FILE"},
      {.names = "-o,--out",
       .target = &options.out,
       .help = "Leave the plan, a line for each step and the timelines in this folder, as run does",
       .value = "FOLDER"},
  };
  for (Option& option : checkpoint_options(options))
    own.push_back(std::move(option));
  return {.name = "train",
          .summary = "Train by the scenario's plan; joins the job of torchrun, Slurm or mpirun",
          .options = with_devices(options, own),
          .examples =
              "Examples: pipewright train scenarios/gpt-text/scenario.json --set "
              "training.steps=20\n"
              "          pipewright train … --processes --checkpoints ckpt --checkpoint-every 10 "
              "--supervise\n"
              "          torchrun --nproc-per-node 2 --no-python pipewright train …"};
}

Command describe_save(SaveOptions& options) {
  return {
      .name = "save",
      .summary =
          "Write a trained model's weights for others: transformers (kind hf), PyTorch (imported)",
      .options = with_scenario(
          options.scenario,
          {{.names = "--checkpoints",
            .target = &options.checkpoints,
            .help = "The newest whole checkpoint in this folder, as train leaves them",
            .value = "FOLDER",
            .required = true},
           {.names = "-o,--out",
            .target = &options.out,
            .help = "Write the weights here; of hf also config.json and the tokenizer of the "
                    "model's folder",
            .value = "FOLDER",
            .required = true}}),
      .examples = "Example: pipewright save scenario.json --checkpoints ckpt -o tuned"};
}

Command describe_generate(GenerateOptions& options) {
  return {.name = "generate",
          .summary = "Go on with sequences of tokens, over the scenario's ranks as threads",
          .options = with_scenario(
              options.scenario,
              {{.names = "--tokens",
                .target = &options.tokens,
                .help = "A prompt as numbers, such as 5,11,2; once for each prompt",
                .value = "TOKENS",
                .required = true,
                .repeated = true},
               {.names = "--checkpoints",
                .target = &options.checkpoints,
                .help = "Weights of the newest whole checkpoint in this folder; without it those "
                        "that training begins with",
                .value = "FOLDER"},
               {.names = "--new-tokens",
                .target = &options.new_tokens,
                .help = "Tokens behind each prompt, at most",
                .numbers = Numbers::Positive,
                .shows_default = true},
               {.names = "--temperature",
                .target = &options.temperature,
                .help = "Logits are divided by it before a token is drawn; 0: the likeliest one",
                .numbers = Numbers::NotNegative,
                .shows_default = true},
               {.names = "--top-k",
                .target = &options.top_k,
                .help = "Draw among so many of the likeliest; 0: among all",
                .numbers = Numbers::NotNegative,
                .shows_default = true},
               {.names = "--seed",
                .target = &options.seed,
                .help = "Of the draws; default: training.seed"},
               {.names = "--stop",
                .target = &options.stop,
                .help = "Tokens that end a sequence, as its last",
                .value = "TOKENS",
                .separator = ','}}),
          .examples =
              "Example: pipewright generate scenario.json --checkpoints ckpt --tokens "
              "5,11,2 --temperature 0.8 --top-k 40"};
}

}  // namespace pipewright::cli
