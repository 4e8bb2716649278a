#pragma once

// Stages of equal measured time, for a PipelineModule of one's own.

#include <memory>

#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/data/loader.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::loop {

struct MeasuredBy {
  exec::Loss loss;
  exec::Batch example;  // one microbatch, as training will have them
  at::ScalarType precision = at::kFloat;
  plan::ProfileSettings settings{};
};

/// For PipelineOptions::partition: measures the layers, forward, backward and the optimizer's step,
/// on one core of this machine, and cuts where the slowest stage is fastest. In a job the first
/// process measures for all: every process gives its `members`, which must outlive the module's
/// construction.
engine::Partitioner by_measured_cost(MeasuredBy how, const Membership& members = {});

}  // namespace pipewright::loop
