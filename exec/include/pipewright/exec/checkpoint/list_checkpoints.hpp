#pragma once

// Lists the checkpoints in a folder, and finds the newest intact one.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

struct CheckpointInfo {
  std::filesystem::path folder;
  std::int64_t step = 0;
  plan::Bytes size;
  std::string damage;        // empty: no file is missing; checksums are not verified
  bool was_complete = true;  // false: the job ended while it was being written
};

/// Lists checkpoints, newest first, including unfinished ones. Empty if there is no such folder.
std::vector<CheckpointInfo> list_checkpoints(const std::filesystem::path& folder);

/// Returns the step of the newest checkpoint without missing files; 0 if none exists.
int newest_step(const std::filesystem::path& folder);

/// Opens the newest checkpoint of `folder` that is intact, after verifying all its contents. Passes
/// the damage of each newer one to `report`. Throws InputError if none is intact. Only one process
/// of a job calls this; the others `open` the checkpoint that it found.
Checkpoint open_newest(const std::filesystem::path& folder,
                       const std::function<void(const std::string&)>& report);

}  // namespace pipewright::exec
