#include "class_fit.hpp"

#include <algorithm>
#include <cmath>

namespace pipewright::search {

using models::MeasuredRun;
using plan::ConstantRule;
using plan::MachineConstants;

namespace {

/// The layout of a fit's values: first the logarithms of the constants, then effect by effect those
/// of all classes.
class ClassValues {
 public:
  ClassValues(std::size_t constants, std::size_t classes)
      : constants_(constants), classes_(classes) {}

  std::size_t size() const { return constants_ + 3 * classes_; }
  models::LayerFactors factors(const std::vector<double>& values, std::size_t of_class) const {
    const double* const own = &values[constants_ + of_class];
    return {.layer = std::exp(own[0]),
            .embedding = std::exp(own[classes_]),
            .head = std::exp(own[2 * classes_])};
  }

 private:
  std::size_t constants_, classes_;
};

void set_factors(plan::LayerClass& layers, const models::LayerFactors& factors) {
  layers.layer = factors.layer;
  layers.embedding = factors.embedding;
  layers.head = factors.head;
}

}  // namespace

ClassFit fit_classes(const plan::Cluster& cluster, const Runs& runs, const Physics& physics,
                     ClassWidth width) {
  const auto rules = rules_for(ConstantRule::Use::Schedule);
  const Classes classes(runs);
  const ClassValues layout(rules.size(), classes.classes.size());
  const FitParameter layer{.mean = 0, .spread = width.spread, .least = -3, .most = 3};
  const FitParameter other{.mean = 0, .spread = 2 * width.spread, .least = -6, .most = 6};
  FitProblem problem{.shared = parameters_of(rules, physics.constants, plan::MachineSpread{}),
                     .effects = {layer, other, other},
                     .groups = static_cast<int>(classes.classes.size()),
                     .group_of_row = classes.of_row,
                     .residuals = {}};
  RunSimulator simulator(cluster);
  problem.residuals = [&](const std::vector<double>& values) {
    const MachineConstants constants = with_values(physics.constants, rules, values);
    std::vector<double> residuals(runs.size());
    for (std::size_t row = 0; row < runs.size(); ++row)
      residuals[row] =
          runs.residual(simulator, row, constants,
                        layout.factors(values, static_cast<std::size_t>(classes.of_row[row])));
    return residuals;
  };
  FitAnswer answer;
  answer.values = means_of(problem.shared);
  answer.values.resize(layout.size(), 0);
  // From coarse to fine, so that a row's first error is no reason to exclude it.
  for (const double scale : {0.03, 0.005, 0.001})
    if (scale >= width.scale)
      answer = robust_fit(problem, answer.values, scale, classes.of_row);
  ClassFit fit{.constants = with_values(physics.constants, rules, answer.values),
               .classes = classes.classes,
               .answer = answer};
  for (std::size_t at = 0; at < fit.classes.size(); ++at)
    set_factors(fit.classes[at], layout.factors(answer.values, at));
  return fit;
}

namespace {

const std::vector<ClassWidth> class_widths{{0.03, 0.02}, {0.1, 0.005}, {0.3, 0.001}};

/// Assigns the runs of each class alternately to two halves.
std::vector<char> halves(const std::vector<MeasuredRun>& runs) {
  std::vector<plan::LayerClass> seen;
  std::vector<char> half;
  for (const MeasuredRun& run : runs) {
    const plan::LayerClass own = layer_class_of(run);
    auto found = std::find_if(seen.begin(), seen.end(), [&](const plan::LayerClass& known) {
      return models::same_layers(known, own);
    });
    if (found == seen.end())
      found = seen.insert(seen.end(), own);
    half.push_back(static_cast<char>(found->runs++ % 2));
  }
  return half;
}

/// Returns the mean error of one half's runs predicted from the classes of the other; without a
/// width, predicted from the physics alone. Only runs whose class is in both halves count; returns
/// 0 if those are fewer than half of all runs.
double error_across(const plan::Cluster& cluster, const std::vector<MeasuredRun>& runs,
                    const Assumption& assumed, const Physics& physics,
                    const std::optional<ClassWidth>& width) {
  const std::vector<char> half = halves(runs);
  double sum = 0;
  int count = 0;
  for (const char learnt : {0, 1}) {
    std::vector<MeasuredRun> own, other;
    for (std::size_t row = 0; row < runs.size(); ++row)
      (half[row] == learnt ? own : other).push_back(runs[row]);
    if (own.empty() || other.empty())
      continue;
    const Runs from(cluster, own, assumed);
    const Runs to(cluster, other, assumed);
    const std::vector<plan::LayerClass> known = Classes(from).classes;
    const ClassFit fit = width ? fit_classes(cluster, from, physics, *width)
                               : ClassFit{.constants = physics.constants, .classes = known};
    RunSimulator simulator(cluster);
    for (std::size_t row = 0; row < to.size(); ++row)
      if (const plan::LayerClass* const own_class =
              models::class_in(fit.classes, layer_class_of(to[row]))) {
        sum += std::abs(
            std::expm1(to.residual(simulator, row, fit.constants, models::factors_of(*own_class))));
        ++count;
      }
  }
  return 2 * count < static_cast<int>(runs.size()) ? 0 : sum / count;
}

}  // namespace

std::optional<ClassWidth> best_width(const plan::Cluster& cluster,
                                     const std::vector<MeasuredRun>& runs,
                                     const Assumption& assumed, const Physics& physics) {
  constexpr double clearly = 0.8;
  double best = clearly * error_across(cluster, runs, assumed, physics, {});
  std::optional<ClassWidth> answer;
  for (const ClassWidth& width : class_widths)
    if (const double error = error_across(cluster, runs, assumed, physics, width); error < best) {
      best = error;
      answer = width;
    }
  return answer;
}

}  // namespace pipewright::search
