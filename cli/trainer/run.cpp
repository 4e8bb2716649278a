#include "console.hpp"
#include "devices.hpp"
#include "interrupt.hpp"
#include "pipewright/exec/executor.hpp"
#include "pipewright/plan/comparison.hpp"
#include "pipewright/plan/json_document.hpp"
#include "prediction.hpp"
#include "run_directory.hpp"
#include "torch_commands.hpp"

namespace pipewright::cli {
namespace {

plan::Json report_of(const plan::Scenario& scenario, const Plan& plan,
                     const TrainingOutcome& outcome, const Workload& workload) {
  plan::Json report{{"format", "pipewright/report/1"},
                    {"scenario", scenario.name},
                    {"schedule", scenario.pipeline.schedule},
                    {"ranks", scenario.pipeline.ranks},
                    {"microbatches", scenario.pipeline.microbatches},
                    {"boundaries", plan.partition.boundaries},
                    {"interrupted", outcome.interrupted},
                    {"predicted", to_json(plan::figures_of(plan.predicted))}};
  if (outcome.steps.empty())
    return report;
  const auto measured = typical_figures(outcome.steps, outcome.warm_up());
  report["measured"] = to_json(measured);
  report["error_percent"] = plan::error_json(plan::figures_of(plan.predicted), measured);
  report["steps_measured"] = outcome.steps.size() - outcome.warm_up();
  report["loss"] = outcome.losses;
  report[workload.unit() + "_per_s"] = outcome.units_per_s;
  return report;
}

void add_verification(plan::Json& report, const Verification& v) {
  report["verify"] = {{"bit_identical", v.bit_identical()},
                      {"losses", v.steps},
                      {"equal_losses", v.equal_losses},
                      {"parameter_tensors", v.tensors},
                      {"equal_parameter_tensors", v.equal_tensors},
                      {"parameters", v.parameters}};
  if (!v.bit_identical())
    report["verify"]["first_difference"] = v.first_difference;
}

std::string summary(const plan::Json& report, const Plan& plan, const TrainingOutcome& outcome,
                    const Workload& workload) {
  const auto measured = typical_figures(outcome.steps, outcome.warm_up());
  return fmt::format(
      "\n{}\nloss {:.4f} → {:.4f} in {} steps, {:.0f} {}/s (figures: medians of {} steps after "
      "warm-up; peak: largest)\n",
      plan::comparison_table(plan::figures_of(plan.predicted), measured), outcome.losses.front(),
      outcome.losses.back(), outcome.losses.size(), outcome.units_per_s, workload.unit(),
      report["steps_measured"].get<int>());
}

}  // namespace

int run_scenario(const RunOptions& options) {
  auto scenario = read_scenario(options.scenario);
  open_devices(options.device, scenario.training.cpu_branch);
  plan::require_trainable(scenario);
  const plan::Program program = sim::sound_program(scenario);
  exec::require_trainable(program);
  if (options.verify)
    require_verifiable(program, scenario);
  const Workload workload(
      scenario,
      devices_for(options.device, scenario.pipeline.ranks * scenario.pipeline.replicas, nullptr));
  if (lie_apart(workload.devices()))
    scenario.pipeline.hand_over = plan::HandOver::Copy;
  catch_interrupts();
  const auto costs = costs_for(scenario, workload, options.costs);
  const Plan plan = make_plan(scenario, costs);
  say(plan_table(plan, costs) + (options.device.on_gpu() ? "" : core_warning(scenario)));

  RunDirectory directory(options.out, scenario.name);
  directory.write_plan(scenario, costs, plan);
  Membership alone;
  const TrainingOutcome outcome =
      train(scenario, plan, workload, alone, {.verified = options.verify});
  plan::Json report = report_of(scenario, plan, outcome, workload);
  if (!outcome.steps.empty())
    directory.write_timelines(
        plan, timeline_of(typical_step(outcome.steps, outcome.warm_up()), "measured"),
        fmt::format("{}: {}, {} ranks, {} microbatches", scenario.name, scenario.pipeline.schedule,
                    scenario.pipeline.ranks, scenario.pipeline.microbatches));
  directory.write_report(report);
  if (outcome.interrupted) {
    say(fmt::format("interrupted after {} steps; what was done lies in {}", outcome.losses.size(),
                    directory.path().string()));
    return Interrupted;
  }

  bool identical = true;
  std::string verdict;
  if (options.verify) {
    const Verification verification = verify(scenario, workload, outcome);
    add_verification(report, verification);
    directory.write_report(report);
    identical = verification.bit_identical();
    verdict = to_string(verification) + "\n";
  }
  if (options.scenario.json)
    fmt::print("{}\n", report.dump(2));
  else
    fmt::print("{}{}the run lies in {}\n", summary(report, plan, outcome, workload), verdict,
               directory.path().string());
  return identical ? Done : NegativeAnswer;
}

}  // namespace pipewright::cli
