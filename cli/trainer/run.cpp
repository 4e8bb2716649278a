#include <optional>

#include "console.hpp"
#include "devices.hpp"
#include "explained_error.hpp"
#include "interrupt.hpp"
#include "measured_costs.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/comparison.hpp"
#include "prediction.hpp"
#include "run_directory.hpp"
#include "torch_commands.hpp"

namespace pipewright::cli {
namespace {

/// At most so many steps have a rehearsal before them.
constexpr int most_plays = 50;

/// What was predicted, when, and what came of it.
struct Told {
  plan::StepFigures planned;    // before the training
  plan::StepFigures predicted;  // from the same minutes, where that can be
  plan::StepFigures measured;
  ErrorParts parts{};
  double drift = 0;  // of the machine, while it was measured
  bool rehearsed = false;
};

plan::Json percent(plan::Seconds part, plan::Seconds whole) { return 100 * (part / whole); }

plan::Json report_of(const plan::Scenario& scenario, const Plan& plan,
                     const TrainingOutcome& outcome, const Told& told, const Workload& workload) {
  plan::Json report{{"format", "pipewright/report/1"},
                    {"scenario", scenario.name},
                    {"schedule", scenario.pipeline.schedule},
                    {"ranks", scenario.pipeline.ranks},
                    {"microbatches", scenario.pipeline.microbatches},
                    {"boundaries", plan.partition.boundaries},
                    {"interrupted", outcome.interrupted},
                    {"planned", to_json(told.planned)},
                    {"predicted", to_json(told.predicted)}};
  if (outcome.steps.empty())
    return report;
  report["measured"] = to_json(told.measured);
  report["error_percent"] = plan::error_json(told.predicted, told.measured);
  report["planned_error_percent"] = plan::error_json(told.planned, told.measured);
  const plan::Seconds whole = told.measured.iteration;
  report["error_parts_percent"] = {{"layers", percent(told.parts.layers, whole)},
                                   {"launch", percent(told.parts.launch, whole)},
                                   {"transfers_and_waiting", percent(told.parts.waiting, whole)}};
  report["machine_drift_percent"] = 100 * told.drift;
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

/// "−3.1 %: layers −2.9 %, …", and what the machine did meanwhile.
std::string error_lines(const Told& told) {
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

std::string summary(const plan::Json& report, const Told& told, const TrainingOutcome& outcome,
                    const Workload& workload) {
  return fmt::format(
      "\n{}{}loss {:.4f} → {:.4f} in {} steps, {:.0f} {}/s (figures: medians of {} steps after "
      "warm-up; peak: largest)\n",
      plan::comparison_table(told.predicted, told.measured), error_lines(told),
      outcome.losses.front(), outcome.losses.back(), outcome.losses.size(), outcome.units_per_s,
      workload.unit(), report["steps_measured"].get<int>());
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
  Plan plan = make_plan(scenario, costs);
  say(plan_table(plan, costs) + (options.device.on_gpu() ? "" : core_warning(scenario)));

  RunDirectory directory(options.out, scenario.name);
  directory.write_plan(scenario, costs, plan);
  std::optional<DressRehearsal> rehearsal;
  if (options.costs.empty() && can_rehearse(scenario, plan, workload))
    rehearsal.emplace(scenario, plan, workload);
  const int plays_apart = (scenario.training.steps + most_plays - 1) / most_plays;
  const auto before_step = [&](int step) {
    if (rehearsal && step % plays_apart == 0 && !interrupted())
      rehearsal->play();
  };
  Membership alone;
  const TrainingOutcome outcome = train(scenario, plan, workload, alone,
                                        {.verified = options.verify, .before_step = before_step});
  Told told{.planned = plan::figures_of(plan.predicted),
            .predicted = plan::figures_of(plan.predicted),
            .measured = {},
            .drift = costs.drift};
  if (rehearsal && rehearsal->played() > 0) {
    RehearsedPrediction found = predict(scenario, plan, costs, *rehearsal);
    told.rehearsed = true;
    told.predicted = found.figures;
    told.drift = found.costs.drift;
    plan.predicted = std::move(found.timeline);
    directory.write_rehearsal(found.costs, plan.predicted);
  }
  if (!outcome.steps.empty()) {
    told.measured = typical_figures(outcome.steps, outcome.warm_up());
    told.parts = explain(plan, outcome, told.predicted.iteration, told.measured.iteration);
  }
  plan::Json report = report_of(scenario, plan, outcome, told, workload);
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
    fmt::print("{}{}the run lies in {}\n", summary(report, told, outcome, workload), verdict,
               directory.path().string());
  return identical ? Done : NegativeAnswer;
}

}  // namespace pipewright::cli
