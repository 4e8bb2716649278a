#pragma once

// Measured runs, ready to be timed with many sets of constants; and which of them have the same
// layers.

#include <vector>

#include "pipewright/plan/runs/training_run.hpp"
#include "pipewright/plan/runs/transformer_times.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"
#include "pipewright/sim/calibration/run_simulator.hpp"

namespace pipewright::sim {

/// What runs that do not say so did, within a node and on several.
struct Assumption {
  plan::RunRecompute within = plan::RunRecompute::None;
  plan::RunRecompute between = plan::RunRecompute::None;
};
plan::RunRecompute assumed_of(const plan::Cluster& cluster, const plan::TrainingRun& run,
                              const Assumption& assumed);

/// `cluster` and `runs` must outlive it.
class Runs {
 public:
  Runs(const plan::Cluster& cluster, const std::vector<plan::TrainingRun>& runs,
       const Assumption& assumed);

  std::size_t size() const { return runs_.size(); }
  const plan::TrainingRun& operator[](std::size_t row) const { return runs_[row]; }
  double time(RunSimulator& simulator, std::size_t row, const plan::MachineConstants& constants,
              const plan::LayerFactors& factors = {}) const;
  /// log(predicted / measured).
  double residual(RunSimulator& simulator, std::size_t row, const plan::MachineConstants& constants,
                  const plan::LayerFactors& factors = {}) const;

 private:
  const std::vector<plan::TrainingRun>& runs_;
  std::vector<plan::TransformerWork> work_;
};

/// The classes of layers that runs have, and the place of each run's among them.
struct Classes {
  explicit Classes(const Runs& runs);
  std::vector<plan::LayerClass> classes;
  std::vector<int> of_row;
};

}  // namespace pipewright::sim
