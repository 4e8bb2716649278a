#include "pipewright/loop/record/run_directory.hpp"

#include <fmt/chrono.h>

#include <chrono>
#include <ctime>

#include "pipewright/draw/svg.hpp"
#include "pipewright/draw/timeline.hpp"
#include "pipewright/loop/compare/action_comparison.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "pipewright/trace/files/recorded_days.hpp"

namespace pipewright::loop {
namespace {

std::filesystem::path fresh_folder(const std::string& scenario_name) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const auto base = std::filesystem::path("runs") /
                    fmt::format("{}-{:%Y%m%d-%H%M%S}", scenario_name, fmt::localtime(now));
  auto folder = base;
  for (int again = 2; std::filesystem::exists(folder); ++again)
    folder = fmt::format("{}-{}", base.string(), again);
  return folder;
}

void make_folder(const std::filesystem::path& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure)
    throw plan::InputError(fmt::format("{}: cannot be made: {}", path.string(), failure.message()));
}

}  // namespace

RunDirectory RunDirectory::at(const std::filesystem::path& folder) {
  RunDirectory directory;
  directory.path_ = folder;
  make_folder(folder);
  return directory;
}

RunDirectory::RunDirectory(const std::filesystem::path& wanted, const std::string& scenario_name)
    : path_(wanted.empty() ? fresh_folder(scenario_name) : wanted) {
  std::error_code failure;
  if (std::filesystem::exists(path_) && !std::filesystem::is_empty(path_, failure))
    throw plan::InputError(
        fmt::format("{}: already exists and is not empty. Choose another --out.", path_.string()));
  make_folder(path_);
}

namespace {

/// Returns the scenario with a custom schedule read from the run's folder, so that the folder is
/// self-contained.
plan::Scenario self_contained(plan::Scenario scenario) {
  plan::ScheduleChoice& schedule = scenario.pipeline.schedule;
  if (schedule.own)
    schedule.name = schedule.own->lower ? "program.json" : "schedule.csv";
  return scenario;
}

}  // namespace

void RunDirectory::write_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                              const Plan& plan) {
  plan::write_file(path_ / "schedule.csv", plan::to_csv(plan.schedule));
  plan::write_file(path_ / "program.json", to_json(plan.program()).dump(2) + "\n");
  plan::write_file(path_ / "scenario.json", to_json(self_contained(scenario)).dump(2) + "\n");
  plan::write_file(path_ / "model.json", to_json(model_of(scenario)).dump(2) + "\n");
  plan::write_file(path_ / "costs.json", to_json(costs).dump(2) + "\n");
  plan::write_file(
      path_ / "partition.json",
      to_json(plan::PlacedPartition{plan.partition, plan.program().placement.routes.front()})
              .dump(2) +
          "\n");
  plan::write_file(path_ / "predicted.trace.json", plan::to_trace(plan.predicted));
}

void RunDirectory::write_rehearsal(const plan::LayerCosts& costs, const plan::Timeline& predicted) {
  plan::write_file(path_ / "rehearsed_costs.json", to_json(costs).dump(2) + "\n");
  std::filesystem::rename(path_ / "predicted.trace.json", path_ / "planned.trace.json");
  plan::write_file(path_ / "predicted.trace.json", plan::to_trace(predicted));
}

void RunDirectory::write_timelines(const Plan& plan, const plan::Timeline& measured,
                                   const std::string& title) {
  plan::write_file(path_ / "measured.trace.json", plan::to_trace(measured));
  plan::write_file(path_ / "actions.csv", actions_csv(compare_actions(plan.predicted, measured)));
  plan::write_file(path_ / "timeline.svg",
                   draw::to_svg(draw::timeline_scene({plan.predicted, measured}, title)));
}

void RunDirectory::write_record(const models::RecordedSteps& record) {
  plan::write_file(path_ / trace::recorded_steps_file, models::to_csv(record));
}

void RunDirectory::write_report(const plan::Json& report) {
  plan::write_file(path_ / "report.json", report.dump(2) + "\n");
}

StoredRun read_run(const std::filesystem::path& folder) {
  const auto document = [&](const char* name) { return plan::JsonDocument::read(folder / name); };
  const auto holds = [&](const char* name) { return std::filesystem::exists(folder / name); };
  StoredRun run;
  run.scenario = plan::scenario_from_json(document("scenario.json"));
  run.costs = plan::layer_costs_from_json(document("costs.json"));
  run.partition = plan::partition_from_json(document("partition.json")).partition;
  run.program = plan::program_from_json(document("program.json"));
  plan::validate(run.program);
  run.predicted = plan::timeline_from_trace(document("predicted.trace.json"));
  if (holds("planned.trace.json"))
    run.planned = plan::timeline_from_trace(document("planned.trace.json"));
  if (holds("rehearsed_costs.json"))
    run.rehearsed_costs = plan::layer_costs_from_json(document("rehearsed_costs.json"));
  if (holds("measured.trace.json"))
    run.measured = plan::timeline_from_trace(document("measured.trace.json"));
  if (holds("report.json"))
    run.report = document("report.json").root();
  return run;
}

}  // namespace pipewright::loop
