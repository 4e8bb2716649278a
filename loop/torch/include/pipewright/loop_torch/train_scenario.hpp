#pragma once

// Trains with a scenario's plan and with checkpoints. Traces, kernel records and verification are
// made only on request.

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "pipewright/loop_torch/measured_timeline.hpp"
#include "pipewright/loop_torch/prepared.hpp"
#include "pipewright/loop_torch/training.hpp"
#include "pipewright/loop_torch/verify.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

struct TrainSettings {
  PrepareOptions prepare{};
  TrainingOptions training{};
  // Output files; an empty path disables the file.
  std::filesystem::path trace{};    // the typical step
  std::filesystem::path kernels{};  // kernels of the actions of one step
  std::filesystem::path folder{};   // plan, a log line for each step, timelines
  bool verify = false;              // also train the same steps without a pipeline, and compare
  /// Called by the first process before it trains.
  std::function<void(const Prepared& prepared)> planned{};
  StepReport serial_step{};  // called after each step of the training without a pipeline
};

struct TrainReport {
  plan::Json report;
  TrainingOutcome outcome;
  std::string unit;                            // unit of outcome.units_per_s
  std::optional<MeasuredTimeline> measured{};  // if a timeline was requested
  std::optional<Verification> verification{};  // if requested
};

/// Trains the scenario. Collective over the processes of a job; only the first gets the report, and
/// only if the training was not interrupted. Throws as run_scenario does.
std::optional<TrainReport> train_scenario(const plan::Scenario& scenario, Membership& members,
                                          const TrainSettings& settings);

/// Checks whether the plan of the scenario can load the newest checkpoint of a folder.
ResumeAnswer can_resume(const plan::Scenario& scenario, Membership& members,
                        const PrepareOptions& options, const std::filesystem::path& checkpoints);

}  // namespace pipewright::loop
