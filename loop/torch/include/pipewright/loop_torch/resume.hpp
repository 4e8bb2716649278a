#pragma once

// Going on from a checkpoint.

#include <filesystem>
#include <functional>
#include <string>

#include "pipewright/exec/checkpoint/check_load.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/workload.hpp"

namespace pipewright::loop {

/// Messages for people, from any thread.
using Say = std::function<void(const std::string&)>;

/// Whether a checkpoint can be loaded by a plan.
struct ResumeAnswer {
  std::filesystem::path checkpoint;
  exec::LoadCheck check;
  bool possible() const { return check.obstacles.empty(); }
};
/// Whether the newest one that is whole can be resumed. Throws InputError where there is none.
ResumeAnswer can_resume(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                        const std::filesystem::path& folder, const Say& say);

/// Loads the newest checkpoint of `folder`, the same on all processes, and returns the step that
/// comes next: 0 where there is no checkpoint. Throws InputError when it cannot be loaded.
int resume(exec::Executor& executor, const plan::Scenario& scenario, const Plan& plan,
           const Workload& workload, const Membership& members, const std::filesystem::path& folder,
           const Say& say);

}  // namespace pipewright::loop
