#pragma once

// The whole loop from a scenario to the folder of its run: measure, plan, agree, train, compare.

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
  bool verify = false;             // trains the same steps without a pipeline, too
  /// Called by the first process before it trains.
  std::function<void(const Prepared& prepared)> planned{};
  StepReport serial_step{};  // after each step without a pipeline
};

/// What a run leaves.
struct RunReport {
  std::filesystem::path folder;  // run_directory.hpp
  plan::Json report;             // as it is there
  RunOutcome outcome;
  std::optional<Verification> verification{};  // where it was asked for, unless interrupted
};

/// In a job every process calls it; the first has the report, the others have nothing. Throws
/// InputError, Infeasible, Stopped while costs are measured, exec::RankFailure or exec::Aborted; a
/// process that throws ends the others.
std::optional<RunReport> run_scenario(const plan::Scenario& scenario, Membership& members,
                                      const RunSettings& settings);

}  // namespace pipewright::loop
