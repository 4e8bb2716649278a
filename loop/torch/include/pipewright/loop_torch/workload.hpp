#pragma once

// The layers and the data of a scenario, built and opened.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::loop {

/// Returns the number of partial sums that make up a product over a dimension that tensor
/// parallelism partitions.
int tensor_groups_of(const plan::Scenario& scenario);

/// Returns the data type of parameters, activations and gradients.
at::ScalarType precision_of(plan::Precision precision);

class Workload {
 public:
  /// Builds the layers and opens the data. `devices` is by rank; empty means that all compute on
  /// the CPU. Throws InputError if the data do not fit the model.
  explicit Workload(const plan::Scenario& scenario, std::vector<exec::RankDevice> devices = {});

  const exec::TrainingSetup& setup() const { return setup_; }
  /// Returns the evaluation data, or null if nothing is evaluated.
  const exec::Dataset* evaluation() const { return evaluation_.get(); }
  bool dynamic_shapes() const { return dynamic_shapes_; }
  double samples_per_step() const { return samples_per_step_; }
  /// Returns what a step consumes in the model's unit, such as tokens.
  double units_per_step() const { return units_per_step_; }
  const std::string& unit() const { return unit_; }
  const std::vector<exec::RankDevice>& devices() const { return devices_; }
  /// Returns the device of the first rank in this process, which represents all ranks in
  /// measurements and comparisons.
  exec::RankDevice device() const;

 private:
  std::unique_ptr<exec::Dataset> data_, evaluation_;
  exec::TrainingSetup setup_;
  bool dynamic_shapes_ = false;
  double samples_per_step_ = 0, units_per_step_ = 0;
  std::string unit_;
  std::vector<exec::RankDevice> devices_;
};

}  // namespace pipewright::loop
