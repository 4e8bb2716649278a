#pragma once

// Cuts a user's PipelineModule into stages of equal measured time.

#include <memory>

#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/data/loader.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::loop {

struct MeasuredBy {
  exec::Loss loss;
  exec::Batch example;  // one microbatch of the shapes that the training will use
  at::ScalarType precision = at::kFloat;
  plan::ProfileSettings settings{};
};

/// Returns a partitioner for PipelineOptions::partition. It measures forward, backward and
/// optimizer step of the layers on one core of this machine and minimizes the time of the slowest
/// stage. In a job the first process measures for all; every process passes its `members`, which
/// must outlive the construction of the module.
engine::Partitioner by_measured_cost(MeasuredBy how, const Membership& members = {});

}  // namespace pipewright::loop
