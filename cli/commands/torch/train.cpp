#include <fmt/format.h>

#include <charconv>

#include "commands/torch/job.hpp"
#include "commands/torch/supervise.hpp"
#include "commands/torch/torch_commands.hpp"
#include "commands/torch/training_console.hpp"
#include "commands/torch/work_table.hpp"
#include "exit_code.hpp"
#include "pipewright/loop_torch/train_scenario.hpp"
#include "pipewright/plan/error.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {
namespace {

int report(const loop::TrainReport& done, const TrainOptions& options) {
  if (done.measured && !options.trace.empty())
    say_clocks(*done.measured);
  const loop::TrainingOutcome& outcome = done.outcome;
  if (options.scenario.json)
    fmt::print("{}\n", done.report.dump(2));
  else if (outcome.losses.empty())
    fmt::print("all {} steps were done already\n", outcome.first_step);
  else
    fmt::print("loss {:.4f} → {:.4f} in {} steps, {:.0f} {}/s\n", outcome.losses.front(),
               outcome.losses.back(), outcome.losses.size(), outcome.units_per_s, done.unit);
  if (outcome.kernels && !options.scenario.json)
    fmt::print("{}", work_table(*outcome.kernels));
  if (done.verification && !options.scenario.json)
    fmt::print("{}\n", to_string(*done.verification));
  return done.verification && !done.verification->bit_identical() ? NegativeAnswer : Done;
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

/// Returns the number of steps between checkpoints; 0 if the training decides.
int steps_between(const TrainOptions& options) {
  const std::string& every = options.checkpoint_every;
  if (every.empty() || every == "auto")
    return 0;
  int steps = 0;
  const char* const end = every.data() + every.size();
  const auto read = std::from_chars(every.data(), end, steps);
  if (read.ec != std::errc() || read.ptr != end || steps < 1)
    throw plan::InputError(fmt::format(
        "--checkpoint-every: \"{}\" is not a number of steps of at least 1, nor auto", every));
  return steps;
}

loop::TrainSettings settings_of(const TrainOptions& options, const plan::Scenario& scenario,
                                TrainingConsole& console) {
  loop::TrainingOptions training = console.training();
  training.slow_place = place_of_slow();
  training.checkpoints = {.folder = options.checkpoints,
                          .every = steps_between(options),
                          .between_failures = {3600 * options.failure_hours},
                          .keep = options.keep,
                          .resume = options.resume || options.supervise};
  return {.prepare = console.prepare(scenario),
          .training = std::move(training),
          .trace = options.trace,
          .kernels = options.kernels,
          .folder = options.out,
          .verify = options.verify,
          .planned = [&console](const loop::Prepared& prepared) { console.planned(prepared); },
          .serial_step = [&console](int step,
                                    const auto& result) { console.serial_step(step, result); }};
}

void check(const TrainOptions& options) {
  const bool about_checkpoints =
      !options.checkpoint_every.empty() || options.resume || options.dry_run || options.supervise;
  if (about_checkpoints && options.checkpoints.empty())
    throw plan::InputError(
        "--checkpoint-every, --resume, --dry-run and --supervise need --checkpoints FOLDER");
  if (options.replan && !options.supervise)
    throw plan::InputError("--replan needs --supervise");
  check_spares(options);
  const bool is_auto = options.checkpoint_every == "auto";
  if (is_auto != (options.failure_hours > 0))
    throw plan::InputError(
        is_auto ? "--checkpoint-every auto needs --failure-hours: the mean time between failures"
                : "--failure-hours is only valid with --checkpoint-every auto");
  steps_between(options);
}

}  // namespace

int train_scenario(const TrainOptions& given) {
  check(given);
  if (is_supervisor(given))
    return supervise(given);
  const TrainOptions options = for_ranks_of_launcher(given);
  if (waited_as_spare())
    return Done;
  return as_job(options, [&](const plan::Scenario& scenario, loop::Membership& members) {
    TrainingConsole console(options);
    if (options.dry_run)
      return answer(
          loop::can_resume(scenario, members, console.prepare(scenario), options.checkpoints));
    const auto done =
        loop::train_scenario(scenario, members, settings_of(options, scenario, console));
    if (done)
      return report(*done, options);
    return interrupted() ? static_cast<int>(Interrupted) : static_cast<int>(Done);
  });
}

}  // namespace pipewright::cli
