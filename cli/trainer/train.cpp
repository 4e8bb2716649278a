#include "console.hpp"
#include "devices.hpp"
#include "interrupt.hpp"
#include "measured_costs.hpp"
#include "pipewright/exec/checkpoint/crc32c.hpp"
#include "pipewright/exec/job/agreement.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "prediction.hpp"
#include "torch_commands.hpp"
#include "training.hpp"

namespace pipewright::cli {
namespace {

/// Costs from the file, or measured by one process for all.
plan::LayerCosts common_costs(const plan::Scenario& scenario, const Workload& workload,
                              const TrainOptions& options, const Membership& members) {
  if (!members.in_job() || !options.costs.empty())
    return costs_for(scenario, workload, options.costs);
  std::string measured;
  if (members.is_first())
    measured = to_json(costs_for(scenario, workload, "")).dump();
  return plan::layer_costs_from_json(
      plan::JsonDocument::parse(members.from_first(measured), "costs of rank 0"));
}

std::string checksum(const std::string& text) {
  return fmt::format("{:08x}", exec::crc32c(text.data(), text.size()));
}

/// What all ranks must have in common, options that make them talk to each other included.
exec::Facts facts_of(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                     const TrainOptions& options) {
  plan::Scenario elsewhere = scenario;
  elsewhere.data.path.clear();  // each machine has it where it likes
  return {{"version", PIPEWRIGHT_VERSION},
          {"scenario", checksum(to_json(elsewhere).dump())},
          {"model", checksum(to_json(model_of(scenario)).dump())},
          {"partition", plan::to_string(plan.partition.boundaries)},
          {"Program", checksum(to_json(plan.program()).dump())},
          {"--device", options.device.device},
          {"computed with (training.cpu_branch)", exec::device_in_words(workload.device())},
          {"--verify", options.verify ? "given" : "not given"},
          {"--trace", options.trace.empty() ? "not given" : "given"},
          {"--checkpoints", options.checkpoints.empty()
                                ? "not given"
                                : fmt::format("given, every {}", options.checkpoint_every)},
          {"--resume", options.resume ? "given" : "not given"}};
}

int report(const plan::Scenario& scenario, const Workload& workload, const TrainingOutcome& outcome,
           const TrainOptions& options) {
  plan::Json answer{{"first_step", outcome.first_step},
                    {"loss", outcome.losses},
                    {workload.unit() + "_per_s", outcome.units_per_s}};
  std::string verdict;
  bool identical = true;
  if (options.verify) {
    const Verification verification = verify(scenario, workload, outcome);
    identical = verification.bit_identical();
    answer["verify"] = {{"bit_identical", identical}};
    verdict = to_string(verification) + "\n";
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

int train_as_member(plan::Scenario scenario, const TrainOptions& options, Membership& members) {
  const Workload workload(
      scenario, devices_for(options.device, scenario.pipeline.ranks * scenario.pipeline.replicas,
                            members.job()));
  if (members.in_job() || lie_apart(workload.devices()))
    scenario.pipeline.hand_over = plan::HandOver::Copy;
  const auto costs = common_costs(scenario, workload, options, members);
  const Plan plan = make_plan(scenario, costs);
  if (options.dry_run)
    return can_resume(scenario, plan, workload, options.checkpoints) ? Done : NegativeAnswer;
  if (members.in_job())
    exec::require_agreement(*members.job(), facts_of(scenario, plan, workload, options));
  members.say_once(plan_table(plan, costs) +
                   (options.device.on_gpu() ? "" : core_warning(scenario)));
  const TrainingOutcome outcome = train(scenario, plan, workload, members,
                                        {.verified = options.verify,
                                         .checkpoints = {.folder = options.checkpoints,
                                                         .every = options.checkpoint_every,
                                                         .keep = options.keep,
                                                         .resume = options.resume}});
  if (outcome.interrupted)
    return Interrupted;
  if (!options.trace.empty() && !outcome.steps.empty()) {
    const plan::Timeline measured = measured_timeline(outcome, members);
    if (members.is_first())
      plan::write_file(options.trace, plan::to_trace(measured));
  }
  return members.is_first() ? report(scenario, workload, outcome, options) : Done;
}

void check(const TrainOptions& options) {
  const bool about_checkpoints = options.checkpoint_every > 0 || options.resume || options.dry_run;
  if (about_checkpoints && options.checkpoints.empty())
    throw plan::InputError("--checkpoint-every, --resume and --dry-run need --checkpoints FOLDER");
}

}  // namespace

int train_scenario(const TrainOptions& options) {
  check(options);
  auto scenario = read_scenario(options.scenario);
  open_devices(options.device, scenario.training.cpu_branch);
  plan::require_trainable(scenario);
  const plan::Program program = sim::sound_program(scenario);
  exec::require_trainable(program);
  if (options.verify)
    require_verifiable(program, scenario);
  if (options.processes && !started_by_launcher())
    return run_as_processes(scenario.pipeline.ranks * scenario.pipeline.replicas,
                            options.patience.timeout_s);
  catch_interrupts();
  Membership members(scenario, options.patience, options.device);
  try {
    return train_as_member(std::move(scenario), options, members);
  } catch (const exec::Aborted& aborted) {
    if (interrupted())
      return Interrupted;
    if (members.job() == nullptr || members.job()->reports_failure())
      say(aborted.what());
    return NegativeAnswer;
  } catch (const std::exception& failure) {
    // The others must not wait for this rank; the report of the job is printed once.
    if (members.job() == nullptr)
      throw;
    members.job()->abort(failure.what());
    if (members.job()->reports_failure())
      say(failure.what());
    return dynamic_cast<const plan::InputError*>(&failure) != nullptr ? BadInput : NegativeAnswer;
  }
}

}  // namespace pipewright::cli
