#pragma once

// A scenario made real: its layers, its data, and the unit that its model counts.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::loop {

/// In how many parts products over a width that shards share out are added up.
int tensor_groups_of(const plan::Scenario& scenario);

/// Of parameters, activations and gradients.
at::ScalarType precision_of(plan::Precision precision);

class Workload {
 public:
  /// Opens the data. `devices`: by rank, where it computes; empty: all on the CPU. Throws
  /// InputError when the data does not fit.
  explicit Workload(const plan::Scenario& scenario, std::vector<exec::RankDevice> devices = {});

  const exec::TrainingSetup& setup() const { return setup_; }
  /// What is evaluated on; null: nothing.
  const exec::Dataset* evaluation() const { return evaluation_.get(); }
  bool dynamic_shapes() const { return dynamic_shapes_; }
  double samples_per_step() const { return samples_per_step_; }
  /// What a step consumes, in the unit that the model counts, such as tokens.
  double units_per_step() const { return units_per_step_; }
  const std::string& unit() const { return unit_; }
  const std::vector<exec::RankDevice>& devices() const { return devices_; }
  /// Of the first rank in this process, which stands for all where one is measured or compared.
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
