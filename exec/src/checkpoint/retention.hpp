#pragma once

// What is removed from a folder of checkpoints, and when.

#include <cstdint>
#include <filesystem>
#include <string>

namespace pipewright::exec {

/// What stands for the job in the name of a folder that is about to be removed, so that half a
/// checkpoint never has the name of a whole one.
std::string retired_job(const std::string& job);

/// Removes unfinished checkpoints, but those of this job from `step` on: other parts may be at
/// work on them.
void remove_left_overs(const std::filesystem::path& folder, const std::string& job,
                       std::int64_t step);

/// Removes the checkpoints up to `step` that are older than the newest `keep` whole ones.
/// Later steps are of a run that went on from a later checkpoint: they are left alone.
void remove_older(const std::filesystem::path& folder, const std::string& job, std::int64_t step,
                  int keep);

}  // namespace pipewright::exec
