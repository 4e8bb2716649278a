#pragma once

// Resumes a training from a checkpoint.

#include <filesystem>
#include <functional>
#include <string>

#include "pipewright/exec/checkpoint/check_load.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/workload.hpp"

namespace pipewright::loop {

/// Receives messages for people, on any thread.
using Say = std::function<void(const std::string&)>;

/// The answer to whether a plan can load a checkpoint.
struct ResumeAnswer {
  std::filesystem::path checkpoint;
  exec::LoadCheck check;
  bool possible() const { return check.obstacles.empty(); }
};
/// Checks the newest complete checkpoint of `folder`. Throws InputError if there is none.
ResumeAnswer can_resume(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                        const std::filesystem::path& folder, const Say& say);

/// Loads the newest checkpoint of `folder`, the same on all processes, and returns the next step; 0
/// if there is no checkpoint. Throws InputError if it cannot be loaded.
int resume(exec::Executor& executor, const plan::Scenario& scenario, const Plan& plan,
           const Workload& workload, const Membership& members, const std::filesystem::path& folder,
           const Say& say);

}  // namespace pipewright::loop
