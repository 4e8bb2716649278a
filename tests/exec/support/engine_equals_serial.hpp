// Compares an engine with serial training of its setup, bit for bit.
#pragma once

#include "exec/support/equals_serial.hpp"
#include "exec/support/synthetic_data.hpp"
#include "pipewright/engine/engine.hpp"

namespace pipewright::test {

/// Sets microbatches of three samples, four to a step.
inline engine::EngineOptions four_microbatches(engine::EngineOptions options = {}) {
  options.train_batch_size = 12;
  options.microbatch_size = 3;
  return options;
}

/// Returns the gradient group of each of four microbatches: one for each pipeline, or with sharded
/// gradients (ZeRO 2 and 3) groups with one microbatch of each pipeline.
inline std::vector<int> groups_of_four(int pipelines, int zero = 0) {
  std::vector<int> groups;
  for (int m = 0; m < 4; ++m)
    groups.push_back(zero < 2 || pipelines == 1 ? m * pipelines / 4 : m % (4 / pipelines));
  return groups;
}

inline void check_same_bits(const std::vector<at::Tensor>& found,
                            const std::vector<at::Tensor>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t p = 0; p < expected.size(); ++p)
    CHECK(same_bits(found[p], expected[p]));
}

/// Compares the losses and parameters of three steps. Schedules whose pipelines have two directions
/// need other groups and are not supported.
inline void check_engine_equals_serial(const engine::PipelineModule& module,
                                       const engine::EngineOptions& options) {
  const SyntheticData data;
  engine::PipelineEngine engine(module, options);
  engine.set_data(exec::batches_of(data, 4));
  auto setup = engine.setup();
  setup.data = &data;
  exec::SerialTrainer serial(setup, 4, groups_of_four(module.replicas(), options.zero));
  for (int step = 0; step < 3; ++step) {
    const auto found = engine.train_batch().value(), expected = serial.step(step);
    CHECK(same_bits(found.loss, expected.loss));
    CHECK(same_bits(found.gradient_norm, expected.gradient_norm));
  }
  check_same_bits(engine.executor().parameters(), serial.parameters());
}

}  // namespace pipewright::test
