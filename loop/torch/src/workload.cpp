#include "pipewright/loop_torch/workload.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "pipewright/exec/data/cifar10.hpp"
#include "pipewright/exec/data/text.hpp"
#include "pipewright/exec/models/alexnet.hpp"
#include "pipewright/exec/models/gpt.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"
#include "pipewright/plan/model/gpt_model.hpp"

namespace pipewright::loop {

using plan::Scenario;

Workload::Workload(const Scenario& scenario, std::vector<exec::RankDevice> devices)
    : devices_(std::move(devices)) {
  const auto& training = scenario.training;
  const exec::BatchShape batch{
      plan::microbatch_count(plan::request_of(scenario.pipeline)) * scenario.pipeline.replicas,
      training.microbatch_size, training.seed};
  units_per_step_ = static_cast<double>(batch.microbatches) * batch.microbatch_size;
  if (const auto* gpt = std::get_if<plan::GptShape>(&scenario.model)) {
    data_ = exec::open_text(scenario.data.path, gpt->sequence, batch);
    setup_.layers = exec::gpt_layers(*gpt);
    units_per_step_ *= gpt->sequence;
    unit_ = "tokens";
  } else {
    const auto& alexnet = std::get<plan::AlexNetShape>(scenario.model);
    data_ = exec::open_cifar10(scenario.data.path, alexnet.image_size, batch);
    setup_.layers = exec::alexnet_layers(alexnet, training.seed);
    unit_ = "images";
  }
  setup_.loss = exec::cross_entropy;
  setup_.data = data_.get();
  setup_.optimizer = {.kind = training.optimizer,
                      .learning_rate = training.learning_rate,
                      .weight_decay = training.weight_decay,
                      .warm_up_steps = training.warm_up_steps,
                      .decay = training.decay,
                      .decay_steps = training.steps - training.warm_up_steps};
  setup_.base_seed = training.seed;
  setup_.microbatch_size = training.microbatch_size;
  if (training.precision == plan::Precision::Mixed)
    setup_.precision = at::kBFloat16;
  setup_.clip_norm = training.clip_norm;
  setup_.gradient_groups = training.gradient_groups;
  setup_.cpu_branch = training.cpu_branch;
}

exec::RankDevice Workload::device() const {
  for (const exec::RankDevice& device : devices_)
    if (!device.device.is_cpu())
      return device;
  return {};
}

}  // namespace pipewright::loop
