#include "commands/torch/job.hpp"
#include "commands/torch/torch_commands.hpp"
#include "commands/torch/training_console.hpp"
#include "exit_code.hpp"
#include "pipewright/loop/compare/action_errors.hpp"
#include "pipewright/loop/compare/idle_comparison.hpp"
#include "pipewright/loop_torch/run_scenario.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {
namespace {

/// Returns "planned 12.3 ms, −20.1 %", and the parts of the error that are not due to the machine's
/// drift since then.
std::string error_lines(const loop::RunFigures& figures) {
  const auto percent_of = [&](plan::Seconds part) {
    return fmt::format("{:+.1f} %", 100 * (part / figures.measured.iteration));
  };
  const auto& parts = figures.parts;
  std::string text;
  if (figures.rehearsed)
    text = fmt::format(
        "planned before the training {}, measured {}: {}\n"
        "the prediction above uses layer costs measured between the training's steps\n",
        plan::time_text(figures.planned.iteration), plan::time_text(figures.measured.iteration),
        percent_of(figures.planned.iteration - figures.measured.iteration));
  return text + fmt::format(
                    "error {}: layers' costs {}, launch {}, transfers and waiting {}; the "
                    "machine's speed drifts by {:.1f} % between repeats\n",
                    percent_of(figures.predicted.iteration - figures.measured.iteration),
                    percent_of(parts.layers), percent_of(parts.launch), percent_of(parts.waiting),
                    100 * figures.drift);
}

std::string summary(const loop::RunReport& run, const std::string& unit) {
  const loop::RunOutcome& outcome = run.outcome;
  const std::vector<double>& losses = outcome.training.losses;
  return fmt::format(
      "\n{}{}{}loss {:.4f} → {:.4f} in {} steps, {:.0f} {}/s (figures: medians of {} steps after "
      "warm-up; peak: largest)\n",
      error_lines(outcome.figures),
      loop::comparison_table(outcome.figures.predicted, outcome.figures.measured),
      loop::idle_line(loop::compare_idle(outcome.plan.predicted, outcome.measured->timeline)),
      losses.front(), losses.back(), losses.size(), outcome.training.units_per_s, unit,
      run.report["steps_measured"].get<int>());
}

int report(const loop::RunReport& run, const RunOptions& options, const std::string& unit) {
  if (run.outcome.measured)
    say_clocks(*run.outcome.measured);
  if (run.outcome.training.interrupted) {
    say(fmt::format("interrupted after {} steps; the results so far are in {}",
                    run.outcome.training.losses.size(), run.folder.string()));
    return Interrupted;
  }
  if (options.scenario.json)
    fmt::print("{}\n", run.report.dump(2));
  else
    fmt::print("{}{}the run is in {}\n", summary(run, unit),
               run.verification ? to_string(*run.verification) + "\n" : "", run.folder.string());
  return run.verification && !run.verification->bit_identical() ? NegativeAnswer : Done;
}

}  // namespace

int run_scenario(const RunOptions& options) {
  return as_job(options, [&](const plan::Scenario& scenario, loop::Membership& members) {
    TrainingConsole console(options);
    std::string unit;
    const auto done = loop::run_scenario(
        scenario, members,
        {.prepare = console.prepare(scenario),
         .training = console.training(),
         .folder = options.out,
         .verify = options.verify,
         .planned =
             [&](const loop::Prepared& prepared) {
               unit = prepared.workload.unit();
               console.planned(prepared);
             },
         .serial_step = [&](int step, const auto& result) { console.serial_step(step, result); }});
    if (done)
      return report(*done, options, unit);
    return interrupted() ? static_cast<int>(Interrupted) : static_cast<int>(Done);
  });
}

}  // namespace pipewright::cli
