#pragma once

// Inputs of other planners, and the best that those find on them.

#include <filesystem>
#include <string>
#include <vector>

namespace pipewright::planners {

/// A row of optima.csv.
struct PlannerCase {
  std::string planner;  // pipedream, piper or calculon
  std::string input;    // a file beside the table
  double memory_gib = 0;
  int devices = 1;
  int microbatches = 1;  // Calculon: the largest batch
  double bandwidth_per_s = 0;
  double optimum = 0;
  double rounding = 0;  // of the optimum as it is printed
  std::string unit;
  double seconds = 0;  // that the other planner took

  bool more_is_better() const { return planner == "calculon"; }
  /// How much worse an answer is than the optimum; negative where it is better.
  double loss(double answer) const {
    return (more_is_better() ? optimum - answer : answer - optimum) / optimum;
  }
  /// What `loss` may be by rounding alone.
  double tolerance() const { return rounding / optimum + 1e-9; }
  std::string name() const;
};

/// Throws InputError.
std::vector<PlannerCase> read_planner_cases(const std::filesystem::path& folder);

/// Our answer under that planner's rules.
double planner_answer(const PlannerCase& input, const std::filesystem::path& folder);

}  // namespace pipewright::planners
