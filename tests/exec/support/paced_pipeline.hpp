// A pipeline of equal paced stages: the training for the executor, and the costs for the simulator.
#pragma once

#include <ATen/ATen.h>

#include "pipewright/engine/models/paced.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/sim/scenario/simulate.hpp"

namespace pipewright::test {

struct PacedPipeline {
  plan::Program program;
  plan::Partition partition;
  exec::TrainingSetup setup;
  sim::StepCosts costs;
};

class OneNumber final : public exec::Dataset {
 public:
  at::Tensor input(int, int) const override { return number_; }
  at::Tensor target(int, int) const override { return number_; }

 private:
  at::Tensor number_ = at::ones({1});
};

/// A layer that takes as little time as possible.
class Source final : public exec::Layer {
 public:
  at::Tensor forward(const at::Tensor& input, const exec::CallContext&) override {
    return input * weight_;
  }

 private:
  at::Tensor weight_ = register_parameter("weight", at::ones({1}));
};

/// A tensor-parallel rank's part of a paced layer, which takes as long as the whole. It sums one
/// number in its forward and one in its backward.
class PacedShard final : public exec::Layer {
 public:
  PacedShard(std::shared_ptr<exec::Layer> paced, exec::TensorParallelPlace place)
      : paced_(std::move(paced)), place_(std::move(place)) {
    register_parameter("weight", paced_->parameters().front());
  }
  at::Tensor forward(const at::Tensor& input, const exec::CallContext& context) override {
    exec::Tensors own = exec::for_own_groups(input, place_);
    own.front() = paced_->forward(own.front(), context);
    return exec::sum_over_groups(own, place_) / place_.groups;
  }

 private:
  std::shared_ptr<exec::Layer> paced_;
  exec::TensorParallelPlace place_;
};

inline exec::LayerSpec paced_stage(int stage, const engine::PacedTimes& times) {
  exec::LayerSpec spec = engine::paced_layer("stage" + std::to_string(stage), times);
  spec.build_shard = [build = spec.build](const exec::TensorParallelPlace& place) {
    return std::make_shared<PacedShard>(build(), place);
  };
  return spec;
}

/// Returns one paced layer per stage, with a layer that takes no time before the first one. Without
/// that the first stage's input would require no gradient, and its backward would be shorter than
/// the others'.
inline std::vector<exec::LayerSpec> paced_layers(int stages, const engine::PacedTimes& times) {
  std::vector<exec::LayerSpec> layers{{"source", [] { return std::make_shared<Source>(); }}};
  for (int stage = 0; stage < stages; ++stage)
    layers.push_back(paced_stage(stage, times));
  return layers;
}

/// Returns the costs of each stage, on ranks with free communication. `sum`: the time of one
/// tensor-parallel sum.
inline sim::StepCosts paced_costs(int stages, int ranks, const engine::PacedTimes& times,
                                  plan::Seconds sum = {}) {
  plan::StageCost cost;
  cost.forward = times.forward + sum;
  cost.input_gradient = times.input_gradient + sum;
  cost.weight_gradient = times.weight_gradient;
  sim::StepCosts costs;
  costs.stages.assign(static_cast<std::size_t>(stages), cost);
  costs.cluster.devices_per_node = ranks;
  return costs;
}

/// Throws InputError if the schedule does not support these sizes, or does not train.
inline PacedPipeline paced_pipeline(plan::ScheduleRequest request,
                                    const engine::PacedTimes& times) {
  request.costs = plan::equal_costs(times.forward, times.input_gradient, times.weight_gradient);
  PacedPipeline made;
  made.program = plan::lower(plan::make_schedule(request), plan::lowering_of(request));
  exec::require_trainable(made.program);
  const int stages = plan::stage_count(made.program);
  made.partition.boundaries.push_back(0);
  for (int stage = 0; stage < stages; ++stage)
    made.partition.boundaries.push_back(stage + 2);

  static const OneNumber data;
  made.setup.layers = paced_layers(stages, times);
  made.setup.loss = [](const exec::Tensors& outputs, const exec::Tensors&) {
    return outputs.front().squeeze();  // one number
  };
  made.setup.data = &data;
  // The time between microbatches counts too, so use the optimizer that takes the least time.
  made.setup.optimizer.kind = plan::Optimizer::Sgd;
  made.costs = paced_costs(stages, request.ranks, times);
  return made;
}

/// Returns the iteration time that the simulator predicts.
inline plan::Seconds predicted_time(const PacedPipeline& pipeline) {
  const auto outcome = sim::simulate(pipeline.program, pipeline.costs);
  return std::get<sim::Completed>(outcome).timeline.length;
}

}  // namespace pipewright::test
