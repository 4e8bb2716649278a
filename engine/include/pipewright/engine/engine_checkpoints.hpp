#pragma once

// Checkpoints of an engine's training (checkpoint.hpp): all of it or weights alone, written while
// it goes on if wanted, and loaded under any other plan.

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
  bool optimizer = true;        // false: weights alone
  bool frozen = true;           // false: without parameters that have no gradient
  bool background = false;      // training goes on while it is written
  int keep = 2;                 // newest whole checkpoints; older ones are removed
  double most_bytes_per_s = 0;  // of each process, where the folder is shared; 0: all it can
  std::map<std::string, std::string> notes{};        // handed out again when it is loaded
  std::function<void(const std::string&)> report{};  // of failures of what is written beside
};

struct ResumeOptions {
  std::optional<std::int64_t> step{};  // of which one; nothing: of the newest that is whole
  /// The optimizer's states, the loss scale, the step and the position in the data; false: weights
  /// alone are taken, and the training is where it was.
  bool training = true;
  /// Of the weights. What is renamed or loaded by a function goes without `training`.
  LoadOptions weights{};
  std::function<void(const std::string&)> report{};  // newer ones that are damaged
};

struct LoadedCheckpoint {
  std::filesystem::path folder;
  std::int64_t step = 0;  // the next to run when it was taken
  std::map<std::string, std::string> notes{};
  IncompatibleKeys keys{};
  std::vector<std::string> differences{};  // why it goes on, but not with the same bits
};

}  // namespace pipewright::engine
