#include "robust_fit.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>

namespace pipewright::search {
namespace {

using Vector = std::vector<double>;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double step = 1e-4;   // of a logarithm, for differences
constexpr double farthest = 1;  // limit of one step
constexpr int most_steps = 40;
constexpr double enough = 1e-3;  // a smaller gain ends the fit

/// The fit itself. Eigen's Levenberg–Marquardt (in `unsupported`) supports neither bounds nor
/// priors nor residuals that count less the larger they are, and needs a dense Jacobian, of which
/// here a row has only entries for its own group. So the steps are computed here, with Eigen's
/// linear solver.
class Fitting {
 public:
  Fitting(const FitProblem& problem, double scale) : problem_(problem), scale_(scale) {
    parameters_ = problem.shared;
    for (const FitParameter& effect : problem.effects)
      parameters_.insert(parameters_.end(), static_cast<std::size_t>(problem.groups), effect);
  }

  FitAnswer run(Vector values, const std::vector<int>& classes) {
    values_ = bounded(std::move(values));
    residuals_ = problem_.residuals(values_);
    cost_ = cost(values_, residuals_);
    for (int steps = 0; steps < most_steps && improve(); ++steps) {
    }
    differentiate();
    return {.values = values_,
            .deviations = deviations(classes),
            .matters = matters(),
            .residuals = residuals_,
            .cost = cost_};
  }

 private:
  std::size_t size() const { return parameters_.size(); }
  /// Returns a parameter's index in Eigen's matrices.
  static Eigen::Index place(std::size_t parameter) { return static_cast<Eigen::Index>(parameter); }
  std::size_t rows() const { return residuals_.size(); }
  /// Returns the number of parameters that a row depends on.
  std::size_t width() const { return problem_.shared.size() + problem_.effects.size(); }
  /// Returns the parameter at the row's index `at`.
  std::size_t parameter(std::size_t row, std::size_t at) const {
    const std::size_t shared = problem_.shared.size();
    if (at < shared)
      return at;
    return shared + (at - shared) * static_cast<std::size_t>(problem_.groups) +
           static_cast<std::size_t>(problem_.group_of_row[row]);
  }

  Vector bounded(Vector values) const {
    for (std::size_t p = 0; p < size(); ++p)
      values[p] = std::clamp(values[p], parameters_[p].least, parameters_[p].most);
    return values;
  }

  double cost(const Vector& values, const Vector& residuals) const {
    double sum = 0;
    for (const double r : residuals)
      sum += 2 * (std::sqrt(1 + r / scale_ * (r / scale_)) - 1);
    for (std::size_t p = 0; p < size(); ++p)
      sum += std::pow(off_prior(values, p), 2);
    return std::isfinite(sum) ? sum : 1e300;
  }

  double off_prior(const Vector& values, std::size_t p) const {
    return (values[p] - parameters_[p].mean) / parameters_[p].spread;
  }

  /// Returns the weight of a row.
  double weight(double residual) const {
    return 1 / (scale_ * scale_ * std::sqrt(1 + residual / scale_ * (residual / scale_)));
  }

  /// Differentiates the residuals. Effects of different groups affect different rows, so one
  /// difference serves all groups.
  void differentiate() {
    jacobian_.assign(rows() * width(), 0);
    for (std::size_t at = 0; at < width(); ++at) {
      const bool shared = at < problem_.shared.size();
      const std::size_t first =
          shared ? at
                 : problem_.shared.size() +
                       (at - problem_.shared.size()) * static_cast<std::size_t>(problem_.groups);
      const std::size_t count = shared ? 1 : static_cast<std::size_t>(problem_.groups);
      Vector moved = values_;
      // Steps away from the nearer bound.
      const double by = values_[first] + step > parameters_[first].most ? -step : step;
      for (std::size_t p = first; p < first + count; ++p)
        moved[p] += by;
      const Vector residuals = problem_.residuals(moved);
      for (std::size_t row = 0; row < rows(); ++row)
        jacobian_[row * width() + at] = (residuals[row] - residuals_[row]) / by;
    }
  }

  /// The quadratic approximation of the cost near `values_`: second derivatives (Gauss and Newton)
  /// and gradient.
  struct Quadratic {
    MatrixXd second;
    VectorXd gradient;
  };
  Quadratic quadratic() const {
    Quadratic near{MatrixXd::Zero(place(size()), place(size())), VectorXd::Zero(place(size()))};
    for (std::size_t row = 0; row < rows(); ++row) {
      const double* const of_row = &jacobian_[row * width()];
      const double w = weight(residuals_[row]);
      for (std::size_t a = 0; a < width(); ++a) {
        const Eigen::Index pa = place(parameter(row, a));
        near.gradient[pa] += w * of_row[a] * residuals_[row];
        for (std::size_t b = 0; b < width(); ++b)
          near.second(pa, place(parameter(row, b))) += w * of_row[a] * of_row[b];
      }
    }
    for (std::size_t p = 0; p < size(); ++p) {
      const double spread = parameters_[p].spread;
      near.second(place(p), place(p)) += 1 / (spread * spread);
      near.gradient[place(p)] += off_prior(values_, p) / spread;
    }
    return near;
  }

  /// Returns the step to the minimum of the damped quadratic, with some parameters fixed. The
  /// priors make the matrix positive definite.
  VectorXd step_of(const Quadratic& near, const std::vector<char>& fixed) const {
    MatrixXd damped = near.second;
    damped.diagonal() *= 1 + damping_;
    VectorXd right = -near.gradient;
    for (std::size_t p = 0; p < size(); ++p)
      if (fixed[p] != 0) {
        damped.row(place(p)).setZero();
        damped.col(place(p)).setZero();
        damped(place(p), place(p)) = 1;
        right[place(p)] = 0;
      }
    return damped.llt().solve(right);
  }

  /// Returns the next values. Parameters that would leave their bounds are fixed, and the others
  /// step without them.
  Vector next(const Quadratic& near) const {
    std::vector<char> fixed(size(), 0);
    Vector moved = values_;
    for (int tries = 0; tries < 4; ++tries) {
      const VectorXd by = step_of(near, fixed);
      bool again = false;
      for (std::size_t p = 0; p < size(); ++p) {
        moved[p] = values_[p] + std::clamp(by[place(p)], -farthest, farthest);
        const bool leaves = (moved[p] > parameters_[p].most && values_[p] >= parameters_[p].most) ||
                            (moved[p] < parameters_[p].least && values_[p] <= parameters_[p].least);
        again = again || (leaves && fixed[p] == 0);
        fixed[p] = static_cast<char>(fixed[p] != 0 || leaves);
      }
      if (!again)
        break;
    }
    return bounded(std::move(moved));
  }

  /// Makes one step; returns true if another is worthwhile.
  bool improve() {
    differentiate();
    const Quadratic near = quadratic();
    for (int tries = 0; tries < 8; ++tries, damping_ *= 5) {
      Vector values = next(near);
      Vector residuals = problem_.residuals(values);
      const double own = cost(values, residuals);
      if (own >= cost_)
        continue;
      const double gain = cost_ - own;
      values_ = std::move(values);
      residuals_ = std::move(residuals);
      cost_ = own;
      damping_ = std::max(damping_ / 5, 1e-8);
      return gain > enough;
    }
    return false;
  }

  std::vector<char> matters() const {
    constexpr double nothing = 1e-7;
    std::vector<char> matters(size(), 0);
    for (std::size_t row = 0; row < rows(); ++row)
      for (std::size_t at = 0; at < width(); ++at)
        if (std::abs(jacobian_[row * width() + at]) > nothing)
          matters[parameter(row, at)] = 1;
    return matters;
  }

  /// Returns standard deviations. Rows of one class count as one observation (Liang and Zeger,
  /// Biometrika 73, 1986), but the result is never smaller than with independent rows.
  Vector deviations(const std::vector<int>& classes) const {
    const Eigen::LLT<MatrixXd> factor(quadratic().second);
    std::map<int, VectorXd> pushes;
    for (std::size_t row = 0; row < rows(); ++row) {
      VectorXd& push =
          pushes.try_emplace(classes[row], VectorXd::Zero(place(size()))).first->second;
      for (std::size_t a = 0; a < width(); ++a)
        push[place(parameter(row, a))] +=
            weight(residuals_[row]) * residuals_[row] * jacobian_[row * width() + a];
    }
    VectorXd variance = VectorXd::Zero(place(size()));
    for (const auto& [own, push] : pushes)
      variance += factor.solve(push).cwiseAbs2();
    const VectorXd alone =
        factor.solve(MatrixXd::Identity(place(size()), place(size()))).diagonal();
    Vector deviations(size());
    for (std::size_t p = 0; p < size(); ++p)
      deviations[p] =
          std::min(std::sqrt(std::max(variance[place(p)], alone[place(p)])), parameters_[p].spread);
    return deviations;
  }

  const FitProblem& problem_;
  const double scale_;
  std::vector<FitParameter> parameters_;
  Vector values_, residuals_, jacobian_;
  double cost_ = 0;
  double damping_ = 1e-2;
};

}  // namespace

FitAnswer robust_fit(const FitProblem& problem, std::vector<double> start, double scale,
                     const std::vector<int>& classes) {
  return Fitting(problem, scale).run(std::move(start), classes);
}

}  // namespace pipewright::search
