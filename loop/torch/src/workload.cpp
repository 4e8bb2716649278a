#include "pipewright/loop_torch/workload.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"

namespace pipewright::loop {

using plan::Scenario;

int tensor_groups_of(const Scenario& scenario) {
  const int asked = scenario.training.tensor_groups;
  return asked > 0 ? asked : scenario.pipeline.tensor;
}

at::ScalarType precision_of(plan::Precision precision) {
  switch (precision) {
    case plan::Precision::Full:
      return at::kFloat;
    case plan::Precision::Mixed:
      return at::kBFloat16;
    case plan::Precision::MixedHalf:
      return at::kHalf;
  }
  throw std::logic_error("no precision");
}

namespace {

exec::LossScaling loss_scaling_of(const plan::Training& training) {
  constexpr double first_scale = 65536;
  if (training.loss_scale > 0)
    return {.scale = training.loss_scale};
  if (training.precision == plan::Precision::MixedHalf)
    return {.scale = first_scale, .dynamic = true};
  return {};
}

}  // namespace

Workload::Workload(const Scenario& scenario, std::vector<exec::RankDevice> devices)
    : devices_(std::move(devices)) {
  const auto& training = scenario.training;
  const exec::BatchShape batch{
      plan::microbatch_count(plan::request_of(scenario.pipeline)) * scenario.pipeline.replicas,
      training.microbatch_size, training.seed, scenario.data.order, scenario.data.document_end};
  samples_per_step_ = static_cast<double>(batch.microbatches) * batch.microbatch_size;
  const engine::ModelBuilder& builder = engine::builder_of(scenario.model);
  data_ = builder.open(scenario.model, scenario.data.path, batch);
  if (training.evaluate_every > 0)
    evaluation_ = builder.open(scenario.model, scenario.data.evaluation, batch);
  units_per_step_ = samples_per_step_ * plan::sample_of(scenario.model).units;
  unit_ = scenario.model.descriptor().unit;
  setup_.layers = builder.layers(
      scenario.model,
      {.seed = training.seed,
       .tokens = scenario.pipeline.sequence_parallel ? exec::Tokens::Cut : exec::Tokens::Whole});
  setup_.loss = builder.loss(scenario.model);
  dynamic_shapes_ = builder.dynamic_shapes;
  setup_.data = data_.get();
  setup_.optimizer = {.kind = training.optimizer,
                      .learning_rate = training.learning_rate,
                      .weight_decay = training.weight_decay,
                      .warm_up_steps = training.warm_up_steps,
                      .decay = training.decay,
                      .decay_steps = training.steps - training.warm_up_steps};
  setup_.optimizer.fp32_gradients = training.fp32_gradients;
  if (training.decayed == plan::Decayed::Matrices)
    setup_.optimizer.rule = [decay = training.weight_decay](const exec::RuledParameter& parameter) {
      return exec::ParameterRule{exec::is_matrix(parameter) ? decay : 0};
    };
  setup_.base_seed = training.seed;
  setup_.microbatch_size = training.microbatch_size;
  setup_.precision = precision_of(training.precision);
  setup_.loss_scaling = loss_scaling_of(training);
  setup_.clip_norm = training.clip_norm;
  setup_.gradient_groups = training.gradient_groups;
  setup_.tensor_groups = tensor_groups_of(scenario);
  setup_.cpu_branch = training.cpu_branch;
}

exec::RankDevice Workload::device() const {
  for (const exec::RankDevice& device : devices_)
    if (!device.device.is_cpu())
      return device;
  return {};
}

}  // namespace pipewright::loop
