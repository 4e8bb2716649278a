#pragma once

// Everything that a training needs before its first step: the scenario with its layers, data and
// costs, and the plan that all processes have agreed on.

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>

#include "pipewright/exec/job/agreement.hpp"
#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/loop_torch/devices.hpp"
#include "pipewright/loop_torch/measured_costs.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/resume.hpp"
#include "pipewright/loop_torch/workload.hpp"

namespace pipewright::loop {

struct PrepareOptions {
  DeviceChoice devices{};
  std::optional<plan::LayerCosts> costs{};  // if empty, one process measures them for all
  Say say{};
  std::function<void(const profiler::Progress&)> profiling{};  // progress of that measurement
  const std::atomic<bool>* stop = nullptr;
  std::filesystem::path cache{};  // folder of the cost cache; empty disables the cache
  bool fresh = false;             // measure all layers even if they are cached
};

struct Prepared {
  plan::Scenario scenario;  // as given
  /// With the hand-over of boundary tensors that the ranks' devices require.
  plan::Scenario executed;
  DeviceChoice devices;
  Workload workload;
  plan::LayerCosts costs;
  bool were_measured = false;  // true if the costs were measured by this call
  std::optional<SharedGpu> shared_gpu;
  Plan plan;
};

/// Returns what transfers are carried by: threads of this process, or a job's processes over Gloo
/// or NCCL.
plan::RankTransport carrier_of(bool in_job, const DeviceChoice& devices);

/// Rejects a scenario that can be predicted but not trained. With `verified`, also rejects one that
/// has no equivalent training without a pipeline. Throws InputError.
void require_trainable(const plan::Scenario& scenario, plan::RankTransport carrier, bool verified);

/// Opens the devices and the data, measures the layers unless costs are given, and plans.
/// Collective over the processes of a job. Throws InputError if the scenario cannot be trained,
/// Infeasible, or Stopped once `stop` is set.
Prepared prepare(const plan::Scenario& scenario, Membership& members,
                 const PrepareOptions& options = {});

/// Returns "given" or "not given", as a fact to agree on.
std::string given(bool is_given);

/// Checks that all processes of a job agree on everything they must have in common. `more` lists
/// options that make ranks communicate. Does nothing without a job. Throws InputError that names
/// what differs.
void require_agreement(Membership& members, const Prepared& prepared, const exec::Facts& more);

}  // namespace pipewright::loop
