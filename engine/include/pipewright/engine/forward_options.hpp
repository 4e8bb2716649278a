#pragma once

// Options of a forward-only model: its devices, its transport and its precision.

#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>
#include <vector>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::engine {

struct ForwardOptions {
  at::ScalarType precision = at::kFloat;  // as in TrainingSetup
  bool pin_threads = true;                // as in ExecutorOptions
  /// Device of each rank. Empty: all on the CPU.
  std::vector<exec::RankDevice> devices{};
  /// If the other ranks are not threads of this process: a transport that nothing else uses, and
  /// the rank of this process in the job. Empty: all ranks are in this process.
  std::shared_ptr<exec::Transport> transport{};
  std::optional<int> only_rank{};
};

}  // namespace pipewright::engine
