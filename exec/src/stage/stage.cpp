#include "pipewright/exec/stage/stage.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "boundary_shapes.hpp"
#include "captured_slot.hpp"
#include "gradient_sums.hpp"
#include "layer_passes.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/stage/layer_observer.hpp"
#include "scattered_gradients.hpp"

namespace pipewright::exec {

using plan::Instruction;

namespace {

Tensors all_on(at::Device device, Tensors values) {
  for (at::Tensor& value : values)
    value = put_on(value, device);
  return values;
}

Tensors copies_of(Tensors values) {
  for (at::Tensor& value : values)
    if (value.defined())
      value = value.detach().clone().requires_grad_(value.requires_grad());
  return values;
}

}  // namespace

Stage::Stage(StageSpec spec, const TrainingSetup& setup)
    : spec_(std::move(spec)),
      setup_(setup),
      layers_(spec_, setup),
      optimizer_(spec_, setup, layers_),
      passes_(std::make_unique<LayerPasses>(spec_, layers_, pass_)),
      input_shapes_(std::make_unique<BoundaryShapes>()),
      output_shapes_(std::make_unique<BoundaryShapes>()) {
  spec_.captures = spec_.captures && spec_.observer == nullptr && layers_.can_be_replayed();
}

Stage::~Stage() = default;

MicrobatchState& Stage::slot(const Instruction& i) {
  return slots_[static_cast<std::size_t>(i.slot)];
}

const Tensors& Stage::inputs(const Instruction& i) const {
  return slots_[static_cast<std::size_t>(i.slot)].inputs;
}

const Tensors& Stage::targets(const Instruction& i) const {
  return slots_[static_cast<std::size_t>(i.slot)].targets;
}

std::vector<Tensors>& Stage::kept_outputs() { return passes_->kept_outputs(); }

void Stage::expect_shapes(const Tensors& inputs, const Tensors& outputs) {
  input_shapes_->expect(inputs);
  output_shapes_->expect(outputs);
}

void Stage::begin(const Pass& pass, int slots) {
  pass_ = pass;
  slots_.clear();
  slots_.resize(static_cast<std::size_t>(slots));
  captured_.resize(std::max(captured_.size(), slots_.size()));
  losses_.begin(pass.microbatches);
  input_shapes_->begin(pass.training);
  output_shapes_->begin(pass.training);
  layers_.train(pass.training);
  // LibTorch sets up kernels in the first pass, which cannot be captured.
  captures_ = spec_.captures && pass.training && !pass.keep_outputs && has_trained_;
  has_trained_ = has_trained_ || pass.training;
  passes_->begin(captures_);
}

void Stage::end() {
  slots_.clear();
  read_losses();
}

const Computed& Stage::replay(const Instruction& i, const std::function<Computed()>& part) {
  auto& captured = captured_[static_cast<std::size_t>(i.slot)];
  if (!captured)
    captured = std::make_unique<CapturedSlot>(spec_.account);
  MicrobatchState& held = slot(i);
  captured->settle({&held.inputs, &held.targets, &held.output_gradients});
  return captured->perform(i.kind, held.backward, part);
}

/// Runs a part of a microbatch's work, or replays its captured work.
Tensors Stage::perform(const Instruction& i, Work work) {
  const StashedWeights weights(optimizer().parameters(), slot(i).weights);
  if (!captures_)
    return (*passes_.*work)(slot(i));
  return replay(i, [this, i, work] { return Computed{(*passes_.*work)(slot(i)), {}}; }).values;
}

/// Runs a part that computes gradients of parameters, or replays its captured work.
Tensors Stage::with_gradients(const Instruction& i, Work work) {
  const StashedWeights weights(optimizer().parameters(), slot(i).weights);
  const int microbatch = pass_.first_microbatch + i.microbatch;
  if (!captures_ || spec_.shard.gradients) {
    optimizer_.begin(microbatch);
    Tensors values = (*passes_.*work)(slot(i));
    optimizer_.end(microbatch);
    return values;
  }
  const Computed& computed = replay(i, [this, i, work] {
    gradients().begin_apart();
    Tensors values = (*passes_.*work)(slot(i));
    return Computed{std::move(values), gradients().take_apart()};
  });
  gradients().add(microbatch, computed.gradients);
  return computed.values;
}

Reading Stage::reading(const Instruction& i) const {
  return {pass_.data, pass_.step, pass_.first_microbatch + i.microbatch, layers_.are_first(),
          layers_.are_last() && pass_.loss};
}

void Stage::load(const Instruction& i) {
  Reading inputs = reading(i), targets = inputs;
  inputs.targets = targets.inputs = false;
  if (inputs.inputs)
    observed(spec_.observer, i, i.kind, spec_.first, [&] { take(i, inputs, read(inputs)); });
  if (targets.targets)
    observed(spec_.observer, i, i.kind, layers_.loss(), [&] { take(i, targets, read(targets)); });
}

void Stage::load(const Instruction& i, ReadData data) { take(i, reading(i), std::move(data)); }

void Stage::take(const Instruction& i, const Reading& what, ReadData data) {
  MicrobatchState& held = slot(i);
  if (what.inputs)
    held.inputs = cast_floats(all_on(spec_.device, std::move(data.inputs)), setup_.precision);
  if (!what.targets)
    return;
  held.targets = all_on(spec_.device, std::move(data.targets));
  held.weight = data.weight;
}

/// Reads keyword arguments, which come with the data, on every stage that has a layer with some.
void Stage::load_keywords(const Instruction& i) {
  if (!layers_.take_keywords() || pass_.data == nullptr)
    return;
  for (auto& [name, value] :
       pass_.data->keywords(pass_.step, pass_.first_microbatch + i.microbatch))
    slot(i).keywords[name] = cast_floats(all_on(spec_.device, {value}), setup_.precision).front();
}

void Stage::receive_inputs(const Instruction& i, Tensors inputs) {
  input_shapes_->check(spec_, i.microbatch, "input", inputs);
  slot(i).inputs = std::move(inputs);
}

void Stage::receive_gradients(const Instruction& i, Tensors output_gradients) {
  slot(i).output_gradients = std::move(output_gradients);
}

void Stage::compute(const Instruction& i) {
  MicrobatchState& held = slot(i);
  switch (*plan::traits_of(i.kind).action) {
    case plan::ActionKind::Forward:
      return forward(i);
    case plan::ActionKind::Recompute:
      perform(i, &LayerPasses::recompute);
      return;
    case plan::ActionKind::Backward:
      held.input_gradients = with_gradients(i, &LayerPasses::backward);
      return held.drop_activations();
    case plan::ActionKind::InputGradient:
      held.input_gradients = perform(i, &LayerPasses::input_gradient);
      return held.inputs.clear();
    case plan::ActionKind::WeightGradient:
      with_gradients(i, &LayerPasses::weight_gradient);
      return held.drop_activations();
  }
}

void Stage::forward(const Instruction& i) {
  MicrobatchState& held = slot(i);
  const auto backward = spec_.backwards.find(i.microbatch);
  held.forward = i;
  held.backward =
      pass_.training && backward != spec_.backwards.end() ? backward->second : BackwardKind();
  load_keywords(i);
  Tensors values = perform(i, &LayerPasses::forward);
  if (pass_.training && spec_.step_every > 0)
    held.weights = StashedWeights::stash(optimizer().parameters());
  if (!layers_.are_last()) {
    output_shapes_->check(spec_, i.microbatch, "output", values);
    held.outputs = std::move(values);
  } else if (pass_.loss) {
    note_loss(i, values.front());
  }
  if (!pass_.training)
    held.inputs.clear();
}

void Stage::note_loss(const Instruction& i, const at::Tensor& loss) {
  MicrobatchState& held = slot(i);
  losses_.add(i.microbatch, loss, held.weight, captures_);
  const int averaged = spec_.step_every > 0 ? spec_.step_every : pass_.microbatches;
  if (pass_.training)
    held.output_gradients = {losses_.gradient(loss, pass_.loss_scale / averaged, held.weight)};
}

/// Captured outputs need no copy: the slot's next microbatch overwrites them only after this one's
/// backward, when the next stage has finished with them.
Tensors Stage::outputs_for_next(const Instruction& i) { return passes_->take_outputs(slot(i)); }

Tensors Stage::take_gradients() { return scattered().take(); }

Tensors Stage::take_input_gradients(const Instruction& i) {
  Tensors gradients = std::move(slot(i).input_gradients);
  // The slot's next microbatch may come before they have been read.
  return captures_ ? copies_of(std::move(gradients)) : gradients;
}

}  // namespace pipewright::exec
