#pragma once

// Fits parameters to rows within bounds, with priors: Levenberg–Marquardt steps on residuals that
// count less the larger they are (soft L1), so that a few unexplained rows do not distort the rest.

#include <functional>
#include <vector>

namespace pipewright::search {

/// A parameter: a logarithm with a normal prior.
struct FitParameter {
  double mean = 0;
  double spread = 1;
  double least = -50;
  double most = 50;
};

/// The rows and parameters of a fit. Rows depend on all `shared` parameters, and for each effect,
/// such as a layer's factor, on one parameter of the row's group.
struct FitProblem {
  std::vector<FitParameter> shared;
  std::vector<FitParameter> effects;  // one of each per group
  int groups = 0;
  std::vector<int> group_of_row;
  /// Returns the residual of every row: log(predicted / measured). The argument holds the shared
  /// parameters, then effect by effect those of all groups.
  std::function<std::vector<double>(const std::vector<double>&)> residuals;
};

struct FitAnswer {
  std::vector<double> values;
  std::vector<double> deviations;  // one standard deviation; the prior's if no row narrows it
  std::vector<char> matters;       // nonzero if any row depends on it
  std::vector<double> residuals;
  double cost = 0;
};

/// Fits the parameters from `start`. Residuals beyond `scale` count linearly. Rows of one class in
/// `classes` have correlated errors, which the deviations take into account.
FitAnswer robust_fit(const FitProblem& problem, std::vector<double> start, double scale,
                     const std::vector<int>& classes);

}  // namespace pipewright::search
