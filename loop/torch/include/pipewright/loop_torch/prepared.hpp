#pragma once

// Before the first step: a scenario with its layers, its data, what they cost, and the plan that
// all processes of a training have agreed on.

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
  std::optional<plan::LayerCosts> costs{};  // none: they are measured, by one process for all
  Say say{};
  std::function<void(const profiler::Progress&)> profiling{};  // while they are
  const std::atomic<bool>* stop = nullptr;
  std::filesystem::path cache{};  // of costs that were measured before; empty: there is none
  bool fresh = false;             // all are measured again
};

struct Prepared {
  plan::Scenario scenario;  // as it was given
  plan::Scenario executed;  // with what follows from where its ranks are: how they hand over
  DeviceChoice devices;
  Workload workload;
  plan::LayerCosts costs;
  bool were_measured = false;  // the costs, now
  std::optional<SharedGpu> shared_gpu;
  Plan plan;
};

/// Between what the ranks are: threads of this process, or processes of a job.
plan::Carrier carrier_of(bool in_job, const DeviceChoice& devices);

/// Refuses a scenario that is predicted but not trained so. `verified`: also one that no training
/// without a pipeline can equal. Throws InputError.
void require_trainable(const plan::Scenario& scenario, plan::Carrier carrier, bool verified);

/// Opens the devices and the data, measures the layers unless costs are given, and plans. Every
/// process of a job calls it. Throws InputError where it cannot be trained, Infeasible, or Stopped
/// once `stop` is set.
Prepared prepare(const plan::Scenario& scenario, Membership& members,
                 const PrepareOptions& options = {});

/// Whether an option was given, as a fact to agree on.
std::string given(bool is_given);

/// Compares what all processes of a job must have in common. `more`: options that make ranks talk
/// to each other. Nothing without a job. Throws InputError that names what differs.
void require_agreement(Membership& members, const Prepared& prepared, const exec::Facts& more);

}  // namespace pipewright::loop
