#include "pipewright/loop_torch/run_scenario.hpp"

#include <fmt/format.h>

#include "logged.hpp"
#include "pipewright/loop/record/run_directory.hpp"

namespace pipewright::loop {
namespace {

void write_timelines(const plan::Scenario& scenario, const RunOutcome& outcome,
                     RunDirectory& directory) {
  if (outcome.rehearsed)
    directory.write_rehearsal(*outcome.rehearsed, outcome.plan.predicted);
  if (outcome.measured)
    directory.write_timelines(outcome.plan, outcome.measured->timeline,
                              fmt::format("{}: {}, {} ranks, {} microbatches", scenario.name,
                                          scenario.pipeline.schedule.label(),
                                          scenario.pipeline.ranks, scenario.pipeline.microbatches));
  if (outcome.recorded.steps() > 0)
    directory.write_record(outcome.recorded);
}

/// Trains on the first process and writes the folder of the run.
RunReport run_and_write(const Prepared& prepared, Membership& members,
                        const TrainingOptions& training, const RunSettings& settings) {
  RunDirectory directory(settings.folder, prepared.scenario.name);
  directory.write_plan(prepared.scenario, prepared.costs, prepared.plan);
  StepLog log(directory.path());
  RunReport done{.folder = directory.path(),
                 .report = {},
                 .outcome = run(prepared, members, logged(training, log, prepared))};
  write_timelines(prepared.scenario, done.outcome, directory);
  log.end();
  done.report = report_of(prepared, done.outcome);
  directory.write_report(done.report);
  if (settings.verify && !done.outcome.training.interrupted) {
    done.verification = verify(prepared.workload, done.outcome.training, settings.training.stop,
                               settings.serial_step);
    done.report["verify"] = to_json(*done.verification);
    directory.write_report(done.report);
  }
  return done;
}

}  // namespace

std::optional<RunReport> run_scenario(const plan::Scenario& scenario, Membership& members,
                                      const RunSettings& settings) {
  std::optional<RunReport> done;
  engine::take_part(members, [&] {
    require_trainable(scenario, carrier_of(members.in_job(), settings.prepare.devices),
                      settings.verify);
    const Prepared prepared = prepare(scenario, members, settings.prepare);
    require_agreement(members, prepared,
                      {{"--verify", given(settings.verify)},
                       {"--costs", given(settings.prepare.costs.has_value())}});
    TrainingOptions training = settings.training;
    training.verified = settings.verify;
    if (!members.is_first()) {
      run(prepared, members, training);
      return;
    }
    if (settings.planned)
      settings.planned(prepared);
    done = run_and_write(prepared, members, training, settings);
  });
  return done;
}

}  // namespace pipewright::loop
