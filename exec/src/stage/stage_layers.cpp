#include "pipewright/exec/stage/stage_layers.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "pipewright/exec/cpu/cpu_branch.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::exec {

StageLayers::StageLayers(const StageSpec& spec, const TrainingSetup& setup)
    : spec_(spec), setup_(setup) {
  if (spec.device.is_cpu())
    use_cpu_branch(setup.cpu_branch);
  else if (setup.exact)
    compute_reproducibly();
  for (int layer = spec.first; layer < spec.last; ++layer) {
    Layer& own = *layers_.emplace_back(build_layer(setup, layer, spec.device, spec.place));
    take_keywords_ = take_keywords_ || !spec_of(layer).keywords.empty();
    for (const auto& named : own.named_parameters())
      if (named.value().requires_grad())
        trained_.push_back({named.value(), layer, named.key(), find_cut(own, named.key()),
                            tied_place(spec_of(layer), named.key())});
    // Aliases of the buffers, because autograd counts changes to the buffers themselves.
    Tensors& buffers = buffers_.emplace_back();
    for (const at::Tensor& buffer : own.buffers())
      buffers.push_back(buffer.variable_data());
  }
}

bool StageLayers::can_be_replayed() const {
  return std::all_of(setup_.layers.begin() + spec_.first, setup_.layers.begin() + spec_.last,
                     exec::can_be_replayed);
}

void StageLayers::train(bool on) {
  for (const auto& layer : layers_)
    if (layer->is_training() != on)
      layer->train(on);
}

Tensors StageLayers::buffers(int first, int last) const {
  Tensors all;
  for (int layer = first; layer < last; ++layer) {
    const Tensors& own = buffers_[static_cast<std::size_t>(layer - spec_.first)];
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

Tensors StageLayers::run(int layer, const Tensors& inputs, const Tensors& targets,
                         const CallContext& context) const {
  if (layer == loss())
    return {loss_of(
        setup_, c10::elementSize(setup_.precision) < 4 ? cast_floats(inputs, at::kFloat) : inputs,
        targets, spec_.place)};
  return run_layer(spec_of(layer), at(layer), layer, setup_.base_seed, inputs, context);
}

Tensors cast_floats(Tensors values, at::ScalarType type) {
  for (at::Tensor& value : values)
    if (value.defined() && at::isFloatingType(value.scalar_type()))
      value = value.to(type);
  return values;
}

}  // namespace pipewright::exec
