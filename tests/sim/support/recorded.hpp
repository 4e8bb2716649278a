#pragma once

// Made-up records of steps.

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::test {

inline models::RecordedOperation recorded(int replica, int rank, const std::string& action,
                                          std::vector<double> seconds) {
  return {replica, rank, plan::parse_instruction(action).value(), std::move(seconds)};
}

inline models::RecordedSteps record_of(std::vector<models::RecordedOperation> operations) {
  models::RecordedSteps record;
  for (std::size_t step = 0; step < operations.front().seconds.size(); ++step)
    record.numbers.push_back(static_cast<int>(step));
  record.operations = std::move(operations);
  return record;
}

/// Returns a record of everything that a Program does, on `replicas` pipelines; every duration is
/// sampled independently.
inline models::RecordedSteps random_record(const plan::Program& program, int replicas, int steps,
                                           std::mt19937& random) {
  std::uniform_real_distribution<double> seconds(0.5, 2);
  std::vector<models::RecordedOperation> operations;
  for (int replica = 0; replica < replicas; ++replica)
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
      for (const plan::Instruction& i : program.ranks[rank]) {
        models::RecordedOperation operation{replica, static_cast<int>(rank), i};
        for (int step = 0; step < steps; ++step)
          operation.seconds.push_back(seconds(random));
        operations.push_back(std::move(operation));
      }
  std::stable_sort(operations.begin(), operations.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.replica, a.rank, plan::key_of(a.instruction)) <
           std::tuple(b.replica, b.rank, plan::key_of(b.instruction));
  });
  return record_of(std::move(operations));
}

}  // namespace pipewright::test
