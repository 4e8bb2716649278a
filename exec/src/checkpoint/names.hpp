#pragma once

// The names of the folders and files of checkpoints.

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/manifest.hpp"

namespace pipewright::exec {

inline constexpr const char* manifest_name = "manifest.json";

/// "step_00000010"
std::string step_name(std::int64_t step);

/// "step_00000010.JOB.tmp", the name of a checkpoint while it is being written.
std::string unfinished_name(std::int64_t step, const std::string& job);

struct StepFolder {
  std::int64_t step = 0;
  std::string job;  // empty if the folder has its final name
  /// Returns true if the folder once had its final name and was renamed: another checkpoint
  /// replaced it, or more than `keep` existed.
  bool is_retired() const;
};
/// Returns the job's name for a folder that is about to be removed. With it, a partly removed
/// checkpoint never has the name of a complete one.
std::string retired_job(const std::string& job);
/// Parses a folder's name; returns nothing if it is neither of the two forms above.
std::optional<StepFolder> parse_step_name(const std::string& name);

/// "layer_003.safetensors"; with a part "optimizer_003-part002.safetensors". If that part already
/// has `before` files of the layer: "optimizer_003-part002-1.safetensors".
std::string file_name(Holds holds, int layer, std::optional<int> part, int before = 0);

/// "part_002.json"
std::string part_name(int part);

}  // namespace pipewright::exec
