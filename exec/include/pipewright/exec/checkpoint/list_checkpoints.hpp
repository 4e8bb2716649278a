#pragma once

// Which checkpoints a folder has, and which is the newest that can be trusted.

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
  std::string damage;  // empty: nothing is missing; the contents of its files are not looked at
  bool was_complete = true;  // false: its job ended while it was written
};

/// Newest first, with those that were never completed. None when there is no such folder.
std::vector<CheckpointInfo> list_checkpoints(const std::filesystem::path& folder);

/// The step of the newest one of which nothing is missing; 0: there is none.
int newest_step(const std::filesystem::path& folder);

/// The newest checkpoint of `folder` that is whole, after a check of all its contents. Each newer
/// one that is damaged or incomplete is told to `report`, with what is wrong with it. Throws
/// InputError when none is left. Of a job's processes one calls this, the others `open` the same.
Checkpoint open_newest(const std::filesystem::path& folder,
                       const std::function<void(const std::string&)>& report);

}  // namespace pipewright::exec
