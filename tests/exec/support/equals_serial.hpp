// Compares a pipelined training with the serial one, bit for bit.
#pragma once

#include <bit>
#include <cstring>

#include "exec/support/small_gpt.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace pipewright::test {

inline bool same_bits(const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor a = left.cpu(), b = right.cpu();
  return a.sizes() == b.sizes() && a.dtype() == b.dtype() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// Returns true for equal bits; NaN equals NaN.
inline bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

struct SerialOutcome {
  std::vector<exec::StepResult> steps;
  std::vector<at::Tensor> parameters;
};

inline SerialOutcome train_serially(const exec::TrainingSetup& setup, int microbatches,
                                    const std::vector<int>& groups, int steps,
                                    const exec::RankDevice& device = {}) {
  exec::SerialTrainer serial(setup, microbatches, groups, device);
  SerialOutcome outcome;
  for (int step = 0; step < steps; ++step)
    outcome.steps.push_back(serial.step(step));
  outcome.parameters = serial.parameters();
  return outcome;
}

/// Trains pipelined, and checks that every loss, norm and parameter has the bits of the serial
/// training.
inline void check_equals(exec::Executor& executor, const SerialOutcome& serial) {
  const int steps = static_cast<int>(serial.steps.size());
  for (int step = 0; step < steps; ++step) {
    const bool continues = step + 1 < steps;
    const auto result = executor.step(step, {.continues = continues}).value();
    const exec::StepResult& expected = serial.steps[static_cast<std::size_t>(step)];
    CHECK(same_bits(result.loss, expected.loss));
    CHECK(same_bits(result.gradient_norm, expected.gradient_norm));
    CHECK(result.skipped == expected.skipped);
  }
  const auto pipelined = executor.parameters();
  REQUIRE(pipelined.size() == serial.parameters.size());
  for (std::size_t i = 0; i < pipelined.size(); ++i)
    CHECK(same_bits(pipelined[i], serial.parameters[i]));
}

/// Trains pipelined and serially, and checks that every loss, norm and parameter has equal bits.
inline void check_equals_serial(const plan::Program& program, const plan::Partition& partition,
                                const exec::TrainingSetup& setup,
                                const exec::ExecutorOptions& options = {}, int steps = 3) {
  exec::Executor executor(program, partition, setup, options);
  check_equals(executor,
               train_serially(setup, program.microbatches * options.replicas,
                              exec::gradient_groups(program, setup, options.replicas), steps,
                              options.devices.empty() ? exec::RankDevice() : options.devices[0]));
}

}  // namespace pipewright::test
