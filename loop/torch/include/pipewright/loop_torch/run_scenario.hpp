#pragma once

// Runs the whole loop from a scenario to the folder of its run: measure, plan, agree, train,
// compare.

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "pipewright/loop_torch/run.hpp"
#include "pipewright/loop_torch/verify.hpp"

namespace pipewright::loop {

struct RunSettings {
  PrepareOptions prepare{};
  TrainingOptions training{};
  std::filesystem::path folder{};  // empty: runs/<scenario>-<time>
  bool verify = false;             // also train the same steps without a pipeline, and compare
  /// Called by the first process before it trains.
  std::function<void(const Prepared& prepared)> planned{};
  StepReport serial_step{};  // called after each step of the training without a pipeline
};

/// The results of a run.
struct RunReport {
  std::filesystem::path folder;  // contents: run_directory.hpp
  plan::Json report;             // as in the folder's report.json
  RunOutcome outcome;
  std::optional<Verification> verification{};  // if requested, and not interrupted
};

/// Runs the scenario. Collective over the processes of a job; only the first gets the report.
/// Throws InputError, Infeasible, Stopped while costs are measured, exec::RankFailure or
/// exec::Aborted. A process that throws ends the others.
std::optional<RunReport> run_scenario(const plan::Scenario& scenario, Membership& members,
                                      const RunSettings& settings);

}  // namespace pipewright::loop
