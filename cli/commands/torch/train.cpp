#include "commands/torch/devices.hpp"
#include "commands/torch/job_member.hpp"
#include "commands/torch/torch_commands.hpp"
#include "commands/torch/trainable.hpp"
#include "commands/torch/training_progress.hpp"
#include "commands/torch/verification.hpp"
#include "commands/torch/work_table.hpp"
#include "exit_code.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop/run_directory.hpp"
#include "pipewright/loop/step_log.hpp"
#include "pipewright/loop/timeline_file.hpp"
#include "pipewright/loop_torch/measured_timeline.hpp"
#include "pipewright/loop_torch/training.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/profiler/activity/kernel_table.hpp"
#include "pipewright/sim/causes/measured_times.hpp"
#include "print/console.hpp"
#include "print/plan_table.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {
namespace {

/// The options that make ranks talk to each other.
exec::Facts facts_of(const TrainOptions& options) {
  return {{"--verify", given(options.verify)},
          {"--trace", given(!options.trace.empty())},
          {"--kernels", given(!options.kernels.empty())},
          {"--out", given(!options.out.empty())},
          {"--checkpoints", options.checkpoints.empty()
                                ? given(false)
                                : fmt::format("given, every {}", options.checkpoint_every)},
          {"--resume", given(options.resume)}};
}

int report(const plan::Scenario& scenario, const loop::Workload& workload,
           const loop::TrainingOutcome& outcome, const TrainOptions& options) {
  plan::Json answer{{"first_step", outcome.first_step},
                    {"loss", outcome.losses},
                    {workload.unit() + "_per_s", outcome.units_per_s}};
  std::string verdict;
  if (outcome.kernels) {
    answer["work"] = to_json(profiler::work_by_rank(outcome.kernels->pass));
    answer["recording_overhead"] =
        outcome.kernels->overhead ? plan::Json(*outcome.kernels->overhead) : plan::Json();
    verdict = work_table(*outcome.kernels);
  }
  bool identical = true;
  if (options.verify) {
    const loop::Verification verification = verify(scenario, workload, outcome);
    identical = verification.bit_identical();
    answer["verify"] = {{"bit_identical", identical}};
    verdict += to_string(verification) + "\n";
  }
  if (options.scenario.json)
    fmt::print("{}\n", answer.dump(2));
  else if (outcome.losses.empty())
    fmt::print("all {} steps were done already\n{}", outcome.first_step, verdict);
  else
    fmt::print("loss {:.4f} → {:.4f} in {} steps, {:.0f} {}/s\n{}", outcome.losses.front(),
               outcome.losses.back(), outcome.losses.size(), outcome.units_per_s, workload.unit(),
               verdict);
  return identical ? Done : NegativeAnswer;
}

/// Prints whether the checkpoint can be loaded.
int answer(const loop::ResumeAnswer& found) {
  for (const std::string& obstacle : found.check.obstacles)
    fmt::print("{}\n", obstacle);
  for (const std::string& difference : found.check.differences)
    fmt::print("not bit-identical from there: {}\n", difference);
  fmt::print("{} {} be loaded here{}\n", found.checkpoint.string(),
             found.possible() ? "can" : "cannot",
             found.possible() && found.check.differences.empty()
                 ? ", and training continues bit-identically"
                 : "");
  return found.possible() ? Done : NegativeAnswer;
}

loop::TrainingOutcome trained(const plan::Scenario& scenario, const loop::Plan& plan,
                              const loop::Workload& workload, loop::Membership& members,
                              const TrainOptions& options, loop::StepLog* log) {
  std::unique_ptr<profiler::ActivitySource> source;
  if (!options.kernels.empty())
    source = options.device.on_gpu() ? profiler::cupti_source() : profiler::operator_source();
  TrainingProgress progress("training", scenario.training.steps, workload);
  return loop::train(scenario, plan, workload, members,
                     {.verified = options.verify,
                      .checkpoints = {.folder = options.checkpoints,
                                      .every = options.checkpoint_every,
                                      .keep = options.keep,
                                      .resume = options.resume},
                      .before_step = [&](int) { progress.begin(); },
                      .after_step =
                          [&](int step, const exec::StepResult& result) {
                            progress.report(step, result);
                            if (log != nullptr)
                              log->add(step_line(step, result, scenario, workload));
                          },
                      .after_record =
                          [&](const loop::StepRecord& record) {
                            if (log != nullptr)
                              log->show([&] { return loop::timeline_of(record, "last step"); });
                          },
                      .say = say,
                      .kernels = source.get(),
                      .stop = &interrupted(),
                      .give_up = give_up,
                      .stall = milliseconds_of(options.patience.stall_s)});
}

/// The first process has it all.
void write_trace(const std::string& file, const loop::MeasuredTimeline& measured,
                 const loop::Plan& plan, const loop::Membership& members) {
  if (!members.is_first())
    return;
  say_clocks(measured);
  loop::write_timeline(file, sim::with_idle_causes(*plan.structure, measured.timeline));
}

/// Of the ranks in the first process.
void write_kernels(const std::string& file, const loop::TrainingOutcome& outcome,
                   const loop::Membership& members) {
  if (file.empty() || !members.is_first())
    return;
  if (!outcome.kernels)
    throw plan::InputError("--kernels: it records every other step, so at least two are needed");
  const auto no_layers = [](int) { return std::string(); };
  loop::write_timeline_file(file, profiler::kernel_table(outcome.kernels->pass, no_layers));
}

/// Where somebody can look on. Nothing unless --out is given, and but on the first process.
std::optional<loop::StepLog> opened_log(const plan::Scenario& scenario,
                                        const plan::LayerCosts& costs, const loop::Plan& plan,
                                        const loop::Membership& members,
                                        const TrainOptions& options) {
  if (options.out.empty() || !members.is_first())
    return {};
  loop::RunDirectory directory = loop::RunDirectory::at(options.out);
  directory.write_plan(scenario, costs, plan);
  return loop::StepLog(directory.path());
}

int train_as_member(plan::Scenario scenario, const TrainOptions& options,
                    loop::Membership& members) {
  const loop::Workload workload = workload_of(scenario, options.device, members);
  const auto costs = common_costs(scenario, workload, options.costs, members);
  const loop::Plan plan = loop::make_plan(scenario, costs);
  if (!options.kernels.empty() && scenario.pipeline.replicas > 1)
    throw plan::InputError("--kernels records one pipeline: pipeline.replicas=1 is needed");
  if (options.dry_run)
    return answer(loop::can_resume(scenario, plan, workload, options.checkpoints, say));
  require_one_plan(members, scenario, plan, workload, options.device, facts_of(options));
  if (members.is_first())
    say(plan_table(plan, costs) + (options.device.on_gpu() ? "" : core_warning(scenario)));
  std::optional<loop::StepLog> log = opened_log(scenario, costs, plan, members, options);
  const loop::TrainingOutcome outcome =
      trained(scenario, plan, workload, members, options, log ? &*log : nullptr);
  if (outcome.interrupted)
    return Interrupted;
  write_kernels(options.kernels, outcome, members);
  if ((!options.trace.empty() || !options.out.empty()) && !outcome.steps.empty()) {
    const loop::MeasuredTimeline measured =
        loop::measured_timeline(outcome.steps, outcome.warm_up(), plan.program(), members);
    if (!options.trace.empty())
      write_trace(options.trace, measured, plan, members);
    if (log) {
      loop::RunDirectory::at(options.out)
          .write_timelines(plan, sim::with_idle_causes(*plan.structure, measured.timeline),
                           scenario.name);
      log->end();
    }
  }
  return members.is_first() ? report(scenario, workload, outcome, options) : Done;
}

void check(const TrainOptions& options) {
  if (!options.kernels.empty())
    loop::require_timeline_suffix(options.kernels);
  const bool about_checkpoints = options.checkpoint_every > 0 || options.resume || options.dry_run;
  if (about_checkpoints && options.checkpoints.empty())
    throw plan::InputError("--checkpoint-every, --resume and --dry-run need --checkpoints FOLDER");
}

}  // namespace

int train_scenario(const TrainOptions& options) {
  check(options);
  return as_job(read_trainable(options.scenario, options.device, options.verify), options.processes,
                options.device, options.patience,
                [&](const plan::Scenario& scenario, loop::Membership& members) {
                  return train_as_member(scenario, options, members);
                });
}

}  // namespace pipewright::cli
