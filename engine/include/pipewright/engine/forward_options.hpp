#pragma once

// Where a model that only runs forward lies, and in which precision.

#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>
#include <vector>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::engine {

struct ForwardOptions {
  at::ScalarType precision = at::kFloat;  // as TrainingSetup has it
  bool pin_threads = true;                // as ExecutorOptions has it
  /// By rank: where it computes. Empty: on the CPU.
  std::vector<exec::RankDevice> devices{};
  /// Where the other ranks are not threads of this process: a transport that nothing else uses, and
  /// which rank of the job this process is. Empty: all ranks are here.
  std::shared_ptr<exec::Transport> transport{};
  std::optional<int> only_rank{};
};

}  // namespace pipewright::engine
