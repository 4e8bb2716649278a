#include "pipewright/loop_torch/run.hpp"

#include "commands/torch/devices.hpp"
#include "commands/torch/job_member.hpp"
#include "commands/torch/torch_commands.hpp"
#include "commands/torch/trainable.hpp"
#include "commands/torch/training_progress.hpp"
#include "commands/torch/verification.hpp"
#include "exit_code.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop/run_directory.hpp"
#include "pipewright/loop/step_log.hpp"
#include "pipewright/plan/timeline/comparison.hpp"
#include "pipewright/plan/timeline/idle_comparison.hpp"
#include "print/console.hpp"
#include "print/plan_table.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {
namespace {

loop::RunOutcome trained(const plan::Scenario& scenario, loop::Plan plan,
                         const plan::LayerCosts& costs, const loop::Workload& workload,
                         loop::Membership& members, const RunOptions& options, loop::StepLog* log) {
  TrainingProgress progress("training", scenario.training.steps, workload);
  return loop::run(scenario, std::move(plan), costs, workload, members,
                   {.verified = options.verify,
                    .before_step = [&](int) { progress.begin(); },
                    .after_step =
                        [&](int step, const exec::StepResult& result) {
                          progress.report(step, result);
                          log->add(step_line(step, result, scenario, workload));
                        },
                    .after_record =
                        [&](const loop::StepRecord& record) {
                          log->show([&] { return loop::timeline_of(record, "last step"); });
                        },
                    .say = say,
                    .stop = &interrupted(),
                    .give_up = give_up,
                    .stall = milliseconds_of(options.patience.stall_s)},
                   /*rehearses=*/options.costs.empty());
}

/// "−3.1 %: layers −2.9 %, …", and what the machine did meanwhile.
std::string error_lines(const loop::Told& told) {
  const auto percent_of = [&](plan::Seconds part) {
    return fmt::format("{:+.1f} %", 100 * (part / told.measured.iteration));
  };
  const auto& parts = told.parts;
  std::string text = fmt::format(
      "error {}: layers' costs {}, launch {}, transfers and waiting {}; the machine's speed drifts "
      "by {:.1f} % between repeats\n",
      percent_of(told.predicted.iteration - told.measured.iteration), percent_of(parts.layers),
      percent_of(parts.launch), percent_of(parts.waiting), 100 * told.drift);
  if (told.rehearsed)
    text += fmt::format(
        "planned with {:.1f} ms, {}, before the training; predicted from costs measured between "
        "its steps\n",
        1e3 * told.planned.iteration.value,
        percent_of(told.planned.iteration - told.measured.iteration));
  return text;
}

std::string summary(const plan::Json& report, const loop::Told& told,
                    const loop::TrainingOutcome& outcome, const loop::Workload& workload,
                    const std::string& idle) {
  return fmt::format(
      "\n{}{}{}loss {:.4f} → {:.4f} in {} steps, {:.0f} {}/s (figures: medians of {} steps after "
      "warm-up; peak: largest)\n",
      plan::comparison_table(told.predicted, told.measured), error_lines(told), idle,
      outcome.losses.front(), outcome.losses.back(), outcome.losses.size(), outcome.units_per_s,
      workload.unit(), report["steps_measured"].get<int>());
}

/// What a run leaves in its folder, and prints.
int report(const plan::Scenario& scenario, const loop::Workload& workload,
           const loop::RunOutcome& outcome, const RunOptions& options,
           loop::RunDirectory& directory, loop::StepLog& log) {
  if (outcome.rehearsed)
    directory.write_rehearsal(*outcome.rehearsed, outcome.plan.predicted);
  if (outcome.measured) {
    say_clocks(*outcome.measured);
    directory.write_timelines(
        outcome.plan, outcome.measured->timeline,
        fmt::format("{}: {}, {} ranks, {} microbatches", scenario.name, scenario.pipeline.schedule,
                    scenario.pipeline.ranks, scenario.pipeline.microbatches));
  }
  log.end();
  plan::Json report = report_of(scenario, outcome, workload);
  directory.write_report(report);
  const loop::TrainingOutcome& training = outcome.training;
  if (training.interrupted) {
    say(fmt::format("interrupted after {} steps; what was done lies in {}", training.losses.size(),
                    directory.path().string()));
    return Interrupted;
  }

  bool identical = true;
  std::string verdict;
  if (options.verify) {
    const loop::Verification verification = verify(scenario, workload, training);
    report["verify"] = to_json(verification);
    directory.write_report(report);
    identical = verification.bit_identical();
    verdict = to_string(verification) + "\n";
  }
  if (options.scenario.json)
    fmt::print("{}\n", report.dump(2));
  else
    fmt::print("{}{}the run lies in {}\n",
               summary(report, outcome.told, training, workload,
                       plan::idle_line(
                           plan::compare_idle(outcome.plan.predicted, outcome.measured->timeline))),
               verdict, directory.path().string());
  return identical ? Done : NegativeAnswer;
}

int run_as_member(plan::Scenario scenario, const RunOptions& options, loop::Membership& members) {
  const loop::Workload workload = workload_of(scenario, options.device, members);
  const auto costs = common_costs(scenario, workload, options.costs, members);
  loop::Plan plan = loop::make_plan(scenario, costs);
  require_one_plan(
      members, scenario, plan, workload, options.device,
      {{"--verify", given(options.verify)}, {"--costs", given(!options.costs.empty())}});
  if (!members.is_first()) {
    trained(scenario, std::move(plan), costs, workload, members, options, nullptr);
    return interrupted() ? Interrupted : Done;
  }
  say(plan_table(plan, costs) + (options.device.on_gpu() ? "" : core_warning(scenario)));
  loop::RunDirectory directory(options.out, scenario.name);
  directory.write_plan(scenario, costs, plan);
  loop::StepLog log(directory.path());
  const loop::RunOutcome outcome =
      trained(scenario, std::move(plan), costs, workload, members, options, &log);
  return report(scenario, workload, outcome, options, directory, log);
}

}  // namespace

int run_scenario(const RunOptions& options) {
  return as_job(read_trainable(options.scenario, options.device, options.verify), options.processes,
                options.device, options.patience,
                [&](const plan::Scenario& scenario, loop::Membership& members) {
                  return run_as_member(scenario, options, members);
                });
}

}  // namespace pipewright::cli
