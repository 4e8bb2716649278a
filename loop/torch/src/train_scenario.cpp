#include "pipewright/loop_torch/train_scenario.hpp"

#include <fmt/format.h>

#include "logged.hpp"
#include "pipewright/loop/record/run_directory.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/profiler/activity/kernel_table.hpp"
#include "pipewright/sim/causes/measured_times.hpp"
#include "pipewright/trace/files/timeline_file.hpp"

namespace pipewright::loop {
namespace {

/// Returns the settings that make ranks communicate, which all processes must agree on.
exec::Facts facts_of(const TrainSettings& settings) {
  const CheckpointSettings& checkpoints = settings.training.checkpoints;
  return {
      {"--verify", given(settings.verify)},
      {"--trace", given(!settings.trace.empty())},
      {"--kernels", given(!settings.kernels.empty())},
      {"--out", given(!settings.folder.empty())},
      {"--checkpoints", checkpoints.folder.empty()
                            ? given(false)
                            : fmt::format("given, every {}{}", checkpoints.every,
                                          checkpoints.between_failures.value > 0 ? ", auto" : "")},
      {"--resume", given(checkpoints.resume)}};
}

void check(const plan::Scenario& scenario, const TrainSettings& settings) {
  if (settings.kernels.empty())
    return;
  trace::require_timeline_suffix(settings.kernels.string());
  if (scenario.pipeline.replicas > 1)
    throw plan::InputError("--kernels records one pipeline: pipeline.replicas=1 is needed");
  if (scenario.pipeline.tensor > 1)
    throw plan::InputError("--kernels records whole stages: pipeline.tensor=1 is needed");
}

/// Opens the progress log on the first process, if there is a folder for it.
std::optional<StepLog> opened_log(const Prepared& prepared, const Membership& members,
                                  const TrainSettings& settings) {
  if (settings.folder.empty() || !members.is_first())
    return {};
  RunDirectory directory = RunDirectory::at(settings.folder);
  directory.write_plan(prepared.scenario, prepared.costs, prepared.plan);
  return StepLog(directory.path());
}

/// Writes the kernels of the ranks in the first process.
void write_kernels(const std::filesystem::path& file, const TrainingOutcome& outcome) {
  if (!outcome.kernels)
    throw plan::InputError("--kernels: it records every other step, so at least two are needed");
  const auto no_layers = [](int) { return std::string(); };
  trace::write_timeline_file(file.string(),
                             profiler::kernel_table(outcome.kernels->pass, no_layers));
}

/// Gathers the steps of all processes; the first process writes them.
std::optional<MeasuredTimeline> write_timelines(const Prepared& prepared,
                                                const TrainingOutcome& outcome,
                                                const Membership& members,
                                                const TrainSettings& settings) {
  if ((settings.trace.empty() && settings.folder.empty()) || outcome.steps.empty())
    return {};
  MeasuredTimeline measured =
      measured_timeline(outcome.steps, outcome.warm_up(), prepared.plan.program(),
                        grid_of(prepared.scenario.pipeline), members);
  if (!members.is_first())
    return {};
  measured.timeline = sim::with_idle_causes(*prepared.plan.structure, std::move(measured.timeline));
  if (!settings.trace.empty())
    trace::write_timeline(settings.trace.string(), measured.timeline);
  if (!settings.folder.empty())
    RunDirectory::at(settings.folder)
        .write_timelines(prepared.plan, measured.timeline, prepared.scenario.name);
  return measured;
}

plan::Json report_of(const TrainReport& done) {
  plan::Json report{{"first_step", done.outcome.first_step},
                    {"loss", done.outcome.losses},
                    {done.unit + "_per_s", done.outcome.units_per_s}};
  if (const auto& kernels = done.outcome.kernels) {
    report["work"] = to_json(profiler::work_by_rank(kernels->pass));
    report["recording_overhead"] =
        kernels->overhead ? plan::Json(*kernels->overhead) : plan::Json();
  }
  if (done.verification)
    report["verify"] = {{"bit_identical", done.verification->bit_identical()}};
  return report;
}

std::unique_ptr<profiler::ActivitySource> kernel_source(const TrainSettings& settings,
                                                        const Workload& workload) {
  if (settings.kernels.empty())
    return nullptr;
  const at::Device device = workload.device().device;
  return device.is_cpu() ? profiler::operator_source() : profiler::cupti_source(device);
}

std::optional<TrainReport> train_prepared(const Prepared& prepared, Membership& members,
                                          const TrainSettings& settings) {
  std::optional<StepLog> log = opened_log(prepared, members, settings);
  const auto source = kernel_source(settings, prepared.workload);
  TrainingOptions training = settings.training;
  training.verified = settings.verify;
  training.kernels = source.get();
  TrainingOutcome outcome = train(prepared.executed, prepared.plan, prepared.workload, members,
                                  log ? logged(training, *log, prepared) : training);
  if (outcome.interrupted)
    return {};
  if (!settings.kernels.empty() && members.is_first())
    write_kernels(settings.kernels, outcome);
  auto measured = write_timelines(prepared, outcome, members, settings);
  if (log)
    log->end();
  if (!members.is_first())
    return {};
  TrainReport done{.report = {},
                   .outcome = std::move(outcome),
                   .unit = prepared.workload.unit(),
                   .measured = std::move(measured)};
  if (settings.verify)
    done.verification =
        verify(prepared.workload, done.outcome, settings.training.stop, settings.serial_step);
  done.report = report_of(done);
  return done;
}

}  // namespace

std::optional<TrainReport> train_scenario(const plan::Scenario& scenario, Membership& members,
                                          const TrainSettings& settings) {
  std::optional<TrainReport> done;
  engine::take_part(members, [&] {
    check(scenario, settings);
    require_trainable(scenario, carrier_of(members.in_job(), settings.prepare.devices),
                      settings.verify);
    const Prepared prepared = prepare(scenario, members, settings.prepare);
    require_agreement(members, prepared, facts_of(settings));
    if (settings.planned && members.is_first())
      settings.planned(prepared);
    done = train_prepared(prepared, members, settings);
  });
  return done;
}

ResumeAnswer can_resume(const plan::Scenario& scenario, Membership& members,
                        const PrepareOptions& options, const std::filesystem::path& checkpoints) {
  const Prepared prepared = prepare(scenario, members, options);
  return can_resume(prepared.executed, prepared.plan, prepared.workload, checkpoints, options.say);
}

}  // namespace pipewright::loop
