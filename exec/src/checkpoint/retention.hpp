#pragma once

// What is removed from a folder of checkpoints, and when.

#include <cstdint>
#include <filesystem>
#include <string>

namespace pipewright::exec {

/// Removes unfinished checkpoints, but those of this job from `step` on: other parts may be at
/// work on them.
void remove_left_overs(const std::filesystem::path& folder, const std::string& job,
                       std::int64_t step);

/// Removes the checkpoints up to `step` that are older than the newest `keep` whole ones.
/// Later steps are of a run that went on from a later checkpoint: they are left alone.
void remove_older(const std::filesystem::path& folder, const std::string& job, std::int64_t step,
                  int keep);

}  // namespace pipewright::exec
