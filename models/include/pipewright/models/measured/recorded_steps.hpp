#pragma once

// Durations of a training's operations over several recorded steps, on every observed worker, with
// their real variation from step to step. A table of them is a CSV file.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::models {

/// An operation of a worker, which is a rank of one data-parallel replica.
struct RecordedOperation {
  int replica = 0;
  int rank = 0;  // in its pipeline
  plan::Instruction instruction;
  std::vector<double> seconds{};  // per step
  friend bool operator==(const RecordedOperation&, const RecordedOperation&) = default;
};

struct RecordedSteps {
  std::vector<int> numbers{};  // of the steps, ascending
  /// Sorted by replica, rank and instruction; each has one duration per step.
  std::vector<RecordedOperation> operations{};

  std::size_t steps() const { return numbers.size(); }
  friend bool operator==(const RecordedSteps&, const RecordedSteps&) = default;
};

/// Reads a table with the columns step, replica, rank, action and seconds: "23,0,1,1F0,0.0661".
/// Every operation needs a line for each step. Throws InputError with all faults of the file:
/// `name:line:column: …`.
RecordedSteps read_recorded_steps(std::string_view csv, const std::string& name);
RecordedSteps read_recorded_steps(const std::filesystem::path& file);

std::string to_csv(const RecordedSteps& record);

}  // namespace pipewright::models
