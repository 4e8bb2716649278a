#pragma once

// The folder of a run, with all files that are needed to reproduce and to explain it.

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
  /// Creates the folder. If `wanted` is empty, its name is runs/<scenario>-<time>. Throws
  /// InputError if the folder cannot be created, or exists and is not empty.
  RunDirectory(const std::filesystem::path& wanted, const std::string& scenario_name);

  /// Opens or creates a folder that may already hold files, for example those of an earlier part of
  /// the training.
  static RunDirectory at(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }

  /// Writes scenario.json, model.json, costs.json, partition.json, schedule.csv, program.json and
  /// predicted.trace.json.
  void write_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs, const Plan& plan);
  /// Writes the costs measured between the steps to rehearsed_costs.json and the prediction from
  /// them to predicted.trace.json. The prediction from before the training is renamed
  /// planned.trace.json.
  void write_rehearsal(const plan::LayerCosts& costs, const plan::Timeline& predicted);
  /// Writes measured.trace.json (the typical step), actions.csv (each action with its prediction)
  /// and timeline.svg (the predicted above the measured timeline).
  void write_timelines(const Plan& plan, const plan::Timeline& measured, const std::string& title);
  /// Writes steps.csv: the compute times of all ranks in each step, from which steps are sampled
  /// (recorded_days.hpp).
  void write_record(const models::RecordedSteps& record);
  /// Writes report.json. It is written last, so a folder with a report is complete.
  void write_report(const plan::Json& report);

 private:
  RunDirectory() = default;
  std::filesystem::path path_;
};

/// The contents of a run's folder.
struct StoredRun {
  plan::Scenario scenario;
  plan::LayerCosts costs;
  plan::Partition partition;
  plan::Program program;
  plan::Timeline predicted;
  /// The prediction from before the training, if a later one replaced it.
  std::optional<plan::Timeline> planned{};
  std::optional<plan::LayerCosts> rehearsed_costs{};
  std::optional<plan::Timeline> measured{};
  plan::Json report{};  // null if the run has not ended
};
/// Reads a run's folder. Throws InputError if a file is missing or malformed.
StoredRun read_run(const std::filesystem::path& folder);

}  // namespace pipewright::loop
