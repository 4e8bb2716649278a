// A GPT whose shards have parts of unequal size, and what runs of it on a grid.
#pragma once

#include <fmt/format.h>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"

namespace pipewright::test {

/// Vocabulary and the perceptron's width are multiples of nothing that shards are.
inline exec::TrainingSetup sharded_setup(int groups) {
  auto setup = small_setup();
  setup.layers =
      engine::gpt_layers({.blocks = 4, .hidden = 20, .heads = 4, .sequence = 8, .vocabulary = 37});
  setup.tensor_groups = groups;
  return setup;
}

/// Of a job: how many there are along each axis.
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
