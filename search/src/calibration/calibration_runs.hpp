#pragma once

// Measured runs prepared to be timed with many sets of constants, and the classes of runs with
// equal layers.

#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/transformer/transformer_times.hpp"
#include "pipewright/search/calibration/run_costs.hpp"
#include "pipewright/search/calibration/run_simulator.hpp"

namespace pipewright::search {

/// The assumed recomputation of runs that do not say it, within a node and on several nodes.
struct Assumption {
  plan::RecomputeMode within = plan::RecomputeMode::None;
  plan::RecomputeMode between = plan::RecomputeMode::None;
};
plan::Cut assumed_cut(const plan::Cluster& cluster, const models::MeasuredRun& run,
                      const Assumption& assumed);
plan::LayerClass layer_class_of(const models::MeasuredRun& run);

/// The runs. `cluster` and `runs` must outlive it.
class Runs {
 public:
  Runs(const plan::Cluster& cluster, const std::vector<models::MeasuredRun>& runs,
       const Assumption& assumed);

  std::size_t size() const { return runs_.size(); }
  const models::MeasuredRun& operator[](std::size_t row) const { return runs_[row]; }
  /// Returns the run's cut, with the assumptions about it.
  const plan::Cut& cut(std::size_t row) const { return cuts_[row]; }
  double time(RunSimulator& simulator, std::size_t row, const plan::MachineConstants& constants,
              const models::LayerFactors& factors = {}) const;
  /// Returns log(predicted / measured).
  double residual(RunSimulator& simulator, std::size_t row, const plan::MachineConstants& constants,
                  const models::LayerFactors& factors = {}) const;

 private:
  const std::vector<models::MeasuredRun>& runs_;
  std::vector<plan::Cut> cuts_;
  std::vector<models::TransformerWork> work_;
};

/// The classes of layers of the runs, and the index of each run's class.
struct Classes {
  explicit Classes(const Runs& runs);
  std::vector<plan::LayerClass> classes;
  std::vector<int> of_row;
};

}  // namespace pipewright::search
