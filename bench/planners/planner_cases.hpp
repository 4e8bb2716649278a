#pragma once

// Inputs of other planners, and the best results that those planners find.

#include <filesystem>
#include <string>
#include <vector>

namespace pipewright::planners {

/// A row of optima.csv.
struct PlannerCase {
  std::string planner;  // pipedream, piper or calculon
  std::string input;    // a file in the table's folder
  double memory_gib = 0;
  int devices = 1;
  int microbatches = 1;  // for Calculon, the largest batch
  double bandwidth_per_s = 0;
  double optimum = 0;
  double rounding = 0;  // of the printed optimum
  std::string unit;
  double seconds = 0;  // taken by the other planner

  bool more_is_better() const { return planner == "calculon"; }
  /// Returns how much worse an answer is than the optimum; negative if it is better.
  double loss(double answer) const {
    return (more_is_better() ? optimum - answer : answer - optimum) / optimum;
  }
  /// Returns the largest `loss` that rounding alone explains.
  double tolerance() const { return rounding / optimum + 1e-9; }
  std::string name() const;
};

/// Reads the table. Throws InputError.
std::vector<PlannerCase> read_planner_cases(const std::filesystem::path& folder);

/// Returns our answer under that planner's rules.
double planner_answer(const PlannerCase& input, const std::filesystem::path& folder);

}  // namespace pipewright::planners
