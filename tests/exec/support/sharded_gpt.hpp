// A GPT whose tensor-parallel ranks have parts of unequal size, and the sizes of its grid.
#pragma once

#include <fmt/format.h>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"

namespace pipewright::test {

/// Vocabulary and MLP width are not divisible by the numbers of tensor-parallel ranks.
inline exec::TrainingSetup sharded_setup(int groups) {
  auto setup = small_setup();
  setup.layers =
      engine::gpt_layers({.blocks = 4, .hidden = 20, .heads = 4, .sequence = 8, .vocabulary = 37});
  setup.tensor_groups = groups;
  return setup;
}

/// The lengths of a job's axes.
struct Sizes {
  plan::Schedule schedule;
  int replicas = 1;
  int shards = 1;
  std::vector<std::string> axes{"pipe", "data", "tensor"};

  exec::ExecutorOptions options() const {
    exec::ExecutorOptions options;
    options.replicas = replicas;
    options.shards = shards;
    options.axes = axes;
    return options;
  }
};

inline std::string to_string(const Sizes& sizes) {
  return fmt::format("{} x {} replicas x {} shards", plan::to_string(sizes.schedule),
                     sizes.replicas, sizes.shards);
}

}  // namespace pipewright::test
