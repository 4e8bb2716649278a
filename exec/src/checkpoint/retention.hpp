#pragma once

// Removal of old and unfinished checkpoints.

#include <cstdint>
#include <filesystem>
#include <string>

namespace pipewright::exec {

/// Removes unfinished checkpoints, except those of this job from `step` on, which other parts may
/// still be writing.
void remove_left_overs(const std::filesystem::path& folder, const std::string& job,
                       std::int64_t step);

/// Removes the checkpoints before `step` that are older than the newest `keep` complete ones. Keeps
/// checkpoints of later steps, which belong to a run that continued from a later checkpoint.
void remove_older(const std::filesystem::path& folder, const std::string& job, std::int64_t step,
                  int keep);

}  // namespace pipewright::exec
