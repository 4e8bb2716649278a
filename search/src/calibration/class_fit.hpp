#pragma once

// Classes of layers: factors in addition to the physics, for layers that several runs have.

#include <optional>

#include "constant_fit.hpp"

namespace pipewright::search {

/// The spread of factors around the physics, and the error beyond which a row counts less.
struct ClassWidth {
  double spread = 0;
  double scale = 0;
};

struct ClassFit {
  plan::MachineConstants constants;
  std::vector<plan::LayerClass> classes;
  FitAnswer answer{};
};

/// Fits the factors of all classes, with the constants that need them.
ClassFit fit_classes(const plan::Cluster& cluster, const Runs& runs, const Physics& physics,
                     ClassWidth width);
/// Returns the width that predicts one half of the runs from the other best, if it does so clearly
/// better than the physics.
std::optional<ClassWidth> best_width(const plan::Cluster& cluster,
                                     const std::vector<models::MeasuredRun>& runs,
                                     const Assumption& assumed, const Physics& physics);

}  // namespace pipewright::search
