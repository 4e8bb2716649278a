#pragma once

// What a run leaves behind: everything that reproduces and explains it.

#include <filesystem>
#include <optional>
#include <string>

#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/model.hpp"

namespace pipewright::loop {

class RunDirectory {
 public:
  /// Makes the folder; an empty `wanted` means runs/<scenario>-<time>. Throws InputError when it is
  /// there already and not empty, or cannot be made.
  RunDirectory(const std::filesystem::path& wanted, const std::string& scenario_name);

  /// A folder that may hold something already, such as what an earlier part of the training left.
  static RunDirectory at(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }

  /// scenario.json, model.json, costs.json, partition.json, schedule.csv, program.json,
  /// predicted.trace.json.
  void write_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs, const Plan& plan);
  /// What was measured between the steps: rehearsed_costs.json, and predicted.trace.json from them.
  /// The prediction from before the training is planned.trace.json from then on.
  void write_rehearsal(const plan::LayerCosts& costs, const plan::Timeline& predicted);
  /// measured.trace.json (the typical step), actions.csv (each of its actions beside its own
  /// prediction) and timeline.svg: predicted above measured.
  void write_timelines(const Plan& plan, const plan::Timeline& measured, const std::string& title);
  /// steps.csv: what ranks computed in each step, for draws of it (recorded_days.hpp).
  void write_record(const models::RecordedSteps& record);
  /// Written last: a folder with a report is whole.
  void write_report(const plan::Json& report);

 private:
  RunDirectory() = default;
  std::filesystem::path path_;
};

/// What a run directory holds.
struct StoredRun {
  plan::Scenario scenario;
  plan::LayerCosts costs;
  plan::Partition partition;
  plan::Program program;
  plan::Timeline predicted;
  std::optional<plan::Timeline> planned{};  // before the training, where it was predicted anew
  std::optional<plan::LayerCosts> rehearsed_costs{};
  std::optional<plan::Timeline> measured{};
  plan::Json report{};  // null in a folder whose run has not ended
};
/// Throws InputError where a file is missing or is not what its name says.
StoredRun read_run(const std::filesystem::path& folder);

}  // namespace pipewright::loop
