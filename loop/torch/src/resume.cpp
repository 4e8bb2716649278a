#include "pipewright/loop_torch/resume.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/rank/training_state.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::loop {
namespace {

exec::TrainingState wanted_state(const plan::Scenario& scenario, const Plan& plan,
                                 const Workload& workload) {
  return exec::training_state(workload.setup(), plan.program(), scenario.pipeline.replicas, 0,
                              exec::device_in_words(workload.device()));
}

}  // namespace

ResumeAnswer can_resume(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                        const std::filesystem::path& folder, const Say& say) {
  const auto checkpoint = exec::open_newest(folder, say);
  return {checkpoint.folder(), exec::check_load(checkpoint, exec::shapes_of(workload.setup()),
                                                wanted_state(scenario, plan, workload))};
}

int resume(exec::Executor& executor, const plan::Scenario& scenario, const Plan& plan,
           const Workload& workload, const Membership& members, const std::filesystem::path& folder,
           const Say& say) {
  const auto say_once = [&](const std::string& message) {
    if (members.is_first())
      say(message);
  };
  const auto found = exec::list_checkpoints(folder);
  if (std::ranges::none_of(found, &exec::CheckpointInfo::was_complete)) {
    for (const exec::CheckpointInfo& unfinished : found)
      say_once(unfinished.damage);
    say_once(fmt::format("no checkpoint in {}: starting with step 0", folder.string()));
    return 0;
  }
  // One process chooses the checkpoint, so that all load the same.
  std::string newest;
  if (members.is_first())
    newest = exec::open_newest(folder, say).folder().string();
  const auto checkpoint = exec::Checkpoint::open(members.from_first(newest));
  const auto check = exec::check_load(checkpoint, exec::shapes_of(workload.setup()),
                                      wanted_state(scenario, plan, workload));
  if (!check.obstacles.empty())
    throw plan::InputError(fmt::format("{}: cannot be loaded\n{}", checkpoint.folder().string(),
                                       plan::listed_lines(check.obstacles)));
  for (const std::string& difference : check.differences)
    say_once("not bit-identical from here: " + difference);
  executor.restore(checkpoint);
  say_once(fmt::format("resumed from {}", checkpoint.folder().string()));
  return static_cast<int>(checkpoint.training().step);
}

}  // namespace pipewright::loop
