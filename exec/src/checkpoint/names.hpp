#pragma once

// What the folders and files of checkpoints are called.

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/manifest.hpp"

namespace pipewright::exec {

inline constexpr const char* manifest_name = "manifest.json";

/// "step_00000010"
std::string step_name(std::int64_t step);

/// "step_00000010.JOB.tmp", while it is being written.
std::string unfinished_name(std::int64_t step, const std::string& job);

struct StepFolder {
  std::int64_t step = 0;
  std::string job;  // empty: it has its final name
  /// Whether it once had: another took its place, or it was one too many.
  bool is_retired() const;
};
/// What stands for the job in the name of a folder that is about to be removed, so that half a
/// checkpoint never has the name of a whole one.
std::string retired_job(const std::string& job);
/// What a name says; nothing for a name that is neither of these.
std::optional<StepFolder> parse_step_name(const std::string& name);

/// "layer_003.safetensors"; with a part "optimizer_003-part002.safetensors", and where that part
/// has `before` files of the layer already, "optimizer_003-part002-1.safetensors".
std::string file_name(Holds holds, int layer, std::optional<int> part, int before = 0);

/// "part_002.json"
std::string part_name(int part);

}  // namespace pipewright::exec
