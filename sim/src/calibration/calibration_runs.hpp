#pragma once

// Measured runs, ready to be timed with many sets of constants; and which of them have the same
// layers.

#include <vector>

#include "pipewright/plan/measured/measured_run.hpp"
#include "pipewright/plan/transformer/transformer_times.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"
#include "pipewright/sim/calibration/run_simulator.hpp"

namespace pipewright::sim {

/// What runs that do not say so did, within a node and on several.
struct Assumption {
  plan::RecomputeMode within = plan::RecomputeMode::None;
  plan::RecomputeMode between = plan::RecomputeMode::None;
};
plan::Cut assumed_cut(const plan::Cluster& cluster, const plan::MeasuredRun& run,
                      const Assumption& assumed);
plan::LayerClass layer_class_of(const plan::MeasuredRun& run);

/// `cluster` and `runs` must outlive it.
class Runs {
 public:
  Runs(const plan::Cluster& cluster, const std::vector<plan::MeasuredRun>& runs,
       const Assumption& assumed);

  std::size_t size() const { return runs_.size(); }
  const plan::MeasuredRun& operator[](std::size_t row) const { return runs_[row]; }
  /// How it was cut, with what is assumed of it.
  const plan::Cut& cut(std::size_t row) const { return cuts_[row]; }
  double time(RunSimulator& simulator, std::size_t row, const plan::MachineConstants& constants,
              const plan::LayerFactors& factors = {}) const;
  /// log(predicted / measured).
  double residual(RunSimulator& simulator, std::size_t row, const plan::MachineConstants& constants,
                  const plan::LayerFactors& factors = {}) const;

 private:
  const std::vector<plan::MeasuredRun>& runs_;
  std::vector<plan::Cut> cuts_;
  std::vector<plan::TransformerWork> work_;
};

/// The classes of layers that runs have, and the place of each run's among them.
struct Classes {
  explicit Classes(const Runs& runs);
  std::vector<plan::LayerClass> classes;
  std::vector<int> of_row;
};

}  // namespace pipewright::sim
