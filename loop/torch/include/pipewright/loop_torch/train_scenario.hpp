#pragma once

// Training by a scenario's plan, with checkpoints, and no more than what is asked for beside it.

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
  // Files, of which an empty one is not written.
  std::filesystem::path trace{};    // the typical step
  std::filesystem::path kernels{};  // what the actions of a step ran
  std::filesystem::path folder{};   // the plan, a line for each step, the timelines
  bool verify = false;              // trains the same steps without a pipeline, too
  /// Called by the first process before it trains.
  std::function<void(const Prepared& prepared)> planned{};
  StepReport serial_step{};  // after each step without a pipeline
};

struct TrainReport {
  plan::Json report;
  TrainingOutcome outcome;
  std::string unit;                            // that outcome.units_per_s counts
  std::optional<MeasuredTimeline> measured{};  // where a timeline was asked for
  std::optional<Verification> verification{};  // where it was asked for
};

/// In a job every process calls it; the first has the report, unless the training was interrupted.
/// Throws as run_scenario does.
std::optional<TrainReport> train_scenario(const plan::Scenario& scenario, Membership& members,
                                          const TrainSettings& settings);

/// Whether the newest checkpoint of a folder can be loaded by the plan that training would take.
ResumeAnswer can_resume(const plan::Scenario& scenario, Membership& members,
                        const PrepareOptions& options, const std::filesystem::path& checkpoints);

}  // namespace pipewright::loop
