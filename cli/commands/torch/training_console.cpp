#include "commands/torch/training_console.hpp"

#include "commands/torch/devices.hpp"
#include "commands/torch/job.hpp"
#include "commands/torch/profiling_line.hpp"
#include "exit_code.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/job/wait_as_spare.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "print/console.hpp"
#include "print/plan_table.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {
namespace {

std::optional<plan::LayerCosts> costs_from(const std::string& file) {
  if (file.empty())
    return {};
  return plan::layer_costs_from_json(plan::JsonDocument::read(file));
}

}  // namespace

loop::PrepareOptions TrainingConsole::prepare(const plan::Scenario& scenario) {
  return {.devices = choice_of(options_.device),
          .costs = costs_from(options_.costs),
          .say = say,
          .profiling = profiling_line(scenario),
          .stop = &interrupted(),
          .cache = loop::cache_folder(),
          .fresh = options_.fresh};
}

loop::TrainingOptions TrainingConsole::training() {
  return {.before_step =
              [this](int) {
                if (training_)
                  training_->begin();
              },
          .after_step =
              [this](const loop::TrainedStep& done) {
                training_->report(done.step, done.result, done.evaluation_loss);
              },
          .say = say,
          .stop = &interrupted(),
          .give_up = give_up,
          .stall = milliseconds_of(options_.limits.stall_s)};
}

void TrainingConsole::planned(const loop::Prepared& prepared) {
  prepared_ = &prepared;
  say(plan_table(prepared.plan, prepared.costs) +
      (options_.device.on_gpu() ? "" : core_warning(prepared.scenario)));
  training_.emplace("training", prepared.scenario.training.steps, prepared.workload);
}

void TrainingConsole::serial_step(int step, const exec::StepResult& result) {
  if (!serial_)
    serial_.emplace("without a pipeline", prepared_->scenario.training.steps, prepared_->workload);
  serial_->report(step, result);
}

int as_job(const RunOptions& options,
           const std::function<int(const plan::Scenario&, loop::Membership&)>& part) {
  const plan::Scenario scenario = read_scenario(options.scenario);
  open_log(options.log);
  open_devices(options.device, scenario.training.cpu_branch);
  const bool in_job = exec::job_from_environment().has_value();
  loop::require_trainable(scenario,
                          loop::carrier_of(in_job || options.processes, choice_of(options.device)),
                          options.verify);
  if (options.processes && !in_job)
    return start_as_processes(plan::ranks_of_job(scenario.pipeline), options.device,
                              options.limits);
  catch_interrupts();
  loop::Membership members(scenario, membership_options(options.device, options.limits));
  const int code = code_of_part(members, [&] { return part(scenario, members); });
  if (code == Done && members.in_job() && members.is_first())
    exec::tell_done(*members.job());
  return code;
}

}  // namespace pipewright::cli
