#pragma once

// Checkpoints of an engine's training (checkpoint.hpp): the full training state or only weights,
// optionally written in the background, and loadable under any other plan.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/engine/module_state.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"

namespace pipewright::engine {

struct SaveOptions {
  bool optimizer = true;    // false: only weights
  bool frozen = true;       // false: without parameters that have no gradient
  bool background = false;  // training continues while the checkpoint is written
  int keep = 2;             // number of newest complete checkpoints to keep; older ones are removed
  double most_bytes_per_s = 0;  // write rate limit per process, for a shared folder; 0: no limit
  std::map<std::string, std::string> notes{};        // returned when the checkpoint is loaded
  std::function<void(const std::string&)> report{};  // receives failures of background writes
};

struct ResumeOptions {
  std::optional<std::int64_t> step{};  // step to load; empty: the newest complete checkpoint
  /// Restores optimizer state, loss scale, step and position in the data as well. False: loads only
  /// weights, and training stays at its current step.
  bool training = true;
  /// How to load the weights. Renaming and a load function require `training` = false.
  LoadOptions weights{};
  std::function<void(const std::string&)> report{};  // receives newer checkpoints that are damaged
};

struct LoadedCheckpoint {
  std::filesystem::path folder;
  std::int64_t step = 0;  // the next step to run when it was taken
  std::map<std::string, std::string> notes{};
  IncompatibleKeys keys{};
  std::vector<std::string> differences{};  // reasons why resumed results will not be bit-identical
};

}  // namespace pipewright::engine
