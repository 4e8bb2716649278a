#include "stage.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "device/stream.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/cpu/cpu_branch.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

using plan::Instruction;

namespace {

bool can_have_gradient(const at::Tensor& tensor) {
  return tensor.defined() &&
         (at::isFloatingType(tensor.scalar_type()) || at::isComplexType(tensor.scalar_type()));
}

/// The same values as the leaves of a new graph. What is computed again has no graph yet, so there
/// every tensor that can have a gradient gets one.
Tensors leaves_of(const Tensors& values, bool from_graph) {
  Tensors leaves;
  for (const at::Tensor& value : values) {
    leaves.push_back(value.defined() ? value.detach() : value);
    if (can_have_gradient(value) && (!from_graph || value.requires_grad()))
      leaves.back().requires_grad_();
  }
  return leaves;
}

Tensors gradients_of(const Tensors& leaves) {
  Tensors gradients;
  for (const at::Tensor& leaf : leaves)
    gradients.push_back(leaf.defined() && leaf.requires_grad() ? leaf.grad() : at::Tensor());
  return gradients;
}

/// The backward is over; the input's gradients stay until they are handed on.
void drop_activations(StageBuffers& held) {
  Tensors input_gradients = std::move(held.input_gradients);
  held = StageBuffers();
  held.input_gradients = std::move(input_gradients);
}

Tensors cast(Tensors values, at::ScalarType type) {
  for (at::Tensor& value : values)
    if (value.defined() && at::isFloatingType(value.scalar_type()))
      value = value.to(type);
  return values;
}

Tensors copies_of(Tensors values) {
  for (at::Tensor& value : values)
    if (value.defined())
      value = value.detach().clone().requires_grad_(value.requires_grad());
  return values;
}

Tensors all_on(at::Device device, Tensors values) {
  for (at::Tensor& value : values)
    value = put_on(value, device);
  return values;
}

PayloadShape shape_of(const at::Tensor& tensor) {
  if (!tensor.defined())
    return {at::ScalarType::Undefined, {}};
  return {tensor.scalar_type(), tensor.sizes().vec()};
}

std::string in_words(const PayloadShape& shape) {
  return shape.first == at::ScalarType::Undefined
             ? "undefined"
             : fmt::format("{} [{}]", c10::toString(shape.first), fmt::join(shape.second, ", "));
}

/// While it lives, parameters have the values that a microbatch's forward used.
class WeightsOfForward {
 public:
  WeightsOfForward(const std::vector<at::Tensor>& parameters, const Tensors& weights)
      : parameters_(parameters), active_(!weights.empty()) {
    for (std::size_t p = 0; active_ && p < parameters.size(); ++p) {
      newest_.push_back(parameters[p].variable_data());
      parameters[p].set_data(weights[p]);
    }
  }
  ~WeightsOfForward() {
    for (std::size_t p = 0; active_ && p < parameters_.size(); ++p)
      parameters_[p].set_data(newest_[p]);
  }
  WeightsOfForward(const WeightsOfForward&) = delete;
  WeightsOfForward& operator=(const WeightsOfForward&) = delete;

 private:
  const std::vector<at::Tensor>& parameters_;
  bool active_;
  Tensors newest_;
};

}  // namespace

Stage::Stage(Place place, const TrainingSetup& setup) : place_(std::move(place)), setup_(setup) {
  if (place_.device.is_cpu())
    use_cpu_branch(setup.cpu_branch);
  else if (setup.exact)
    compute_reproducibly();
  std::vector<at::Tensor> parameters;
  for (int layer = place_.first; layer < place_.last; ++layer) {
    layers_.push_back(build_layer(setup, layer, place_.device));
    for (const auto& named : layers_.back()->named_parameters())
      if (named.value().requires_grad()) {
        parameters.push_back(named.value());
        layer_of_parameter_.push_back(layer);
        name_of_parameter_.push_back(named.key());
      }
  }
  optimizer_ = std::make_unique<Optimizer>(parameters, setup.optimizer, place_.shard);
  gradients_ = std::make_unique<GradientSums>(std::move(parameters), place_.microbatches,
                                              setup.exact && place_.step_every == 0);

  for (int layer = place_.first; layer < place_.last; ++layer)
    place_.captures = place_.captures && !spec_of(layer).random;

  graph_bounds_ = {place_.first, place_.last};
  // The model's input has no gradient: I is what leads back to the first layer, whose own backward
  // is all W.
  if (is_first() && place_.splits_backward && place_.last - place_.first > 1)
    graph_bounds_.insert(graph_bounds_.begin() + 1, place_.first + 1);
  for (int layer = place_.first; layer < place_.last; layer += std::max(1, place_.recompute_layers))
    rerun_bounds_.push_back(layer);
  rerun_bounds_.push_back(place_.last);
}

void Stage::begin(const Pass& pass, int slots) {
  pass_ = pass;
  slots_.clear();
  slots_.resize(static_cast<std::size_t>(slots));
  losses_.assign(static_cast<std::size_t>(pass.microbatches), 0.0);
  loss_gradient_.reset();
  kept_outputs_.clear();
  if (pass.keep_outputs && is_last())
    kept_outputs_.resize(static_cast<std::size_t>(pass.microbatches));
  // An evaluation may have microbatches of its own size.
  input_shapes_.clear();
  output_shapes_.clear();
  for (const auto& layer : layers_)
    if (layer->is_training() != pass.training)
      layer->train(pass.training);
  // In the first pass LibTorch sets up what kernels need: that cannot be captured.
  captures_ = place_.captures && pass.training && !pass.keep_outputs && has_trained_;
  has_trained_ = has_trained_ || pass.training;
}

void Stage::end() {
  slots_.clear();
  read_losses();
}

void Stage::read_losses() {
  for (const auto& [microbatch, loss] : unread_losses_)
    losses_[microbatch] = loss.item<double>();
  unread_losses_.clear();
}

CallContext Stage::context_of(const Instruction& i) const {
  return {pass_.step, pass_.first_microbatch + i.microbatch, pass_.training,
          place_.selective_recompute};
}

const Computed& Stage::replay(const Instruction& i, const std::function<Computed()>& part) {
  const auto slot = static_cast<std::size_t>(i.slot);
  captured_.resize(std::max(captured_.size(), slot + 1));
  if (!captured_[slot])
    captured_[slot] = std::make_unique<CapturedSlot>(place_.account);
  StageBuffers& held = buffers(i);
  captured_[slot]->settle({&held.inputs, &held.targets, &held.output_gradients});
  return captured_[slot]->perform(i.kind, held.parts, part);
}

/// Does a part of the microbatch's work, or replays what was captured of it.
template <class Work>
Tensors Stage::perform(const Instruction& i, const Work& part) {
  if (!captures_)
    return part();
  return replay(i, [part] { return Computed{part(), {}}; }).values;
}

/// The same for a part that computes gradients of parameters.
template <class Work>
Tensors Stage::with_gradients(const Instruction& i, const Work& part) {
  const int microbatch = pass_.first_microbatch + i.microbatch;
  if (!captures_) {
    gradients_->begin(microbatch);
    Tensors values = part();
    gradients_->end(microbatch);
    return values;
  }
  const Computed& computed = replay(i, [this, part] {
    gradients_->begin_apart();
    Tensors values = part();
    return Computed{std::move(values), gradients_->take_apart()};
  });
  gradients_->add(microbatch, computed.gradients);
  return computed.values;
}

void Stage::load(const Instruction& i) {
  const int microbatch = pass_.first_microbatch + i.microbatch;
  if (is_first())
    buffers(i).inputs =
        cast(all_on(place_.device, pass_.data->inputs(pass_.step, microbatch)), setup_.precision);
  if (is_last())
    buffers(i).targets = all_on(place_.device, pass_.data->targets(pass_.step, microbatch));
}

void Stage::receive_inputs(const Instruction& i, Tensors inputs) {
  check_shapes("input", inputs, input_shapes_, i.microbatch);
  buffers(i).inputs = std::move(inputs);
}

void Stage::check_shapes(const char* what, const Tensors& tensors, std::vector<PayloadShape>& known,
                         int microbatch) const {
  if (setup_.dynamic_shapes)
    return;
  const auto refuse = [&](const std::string& rest) {
    throw plan::InputError(
        fmt::format("stage {}, microbatch {}: {}; shapes that change from "
                    "microbatch to microbatch need `dynamic_shapes`",
                    place_.index, microbatch, rest));
  };
  if (known.empty()) {
    for (const at::Tensor& tensor : tensors)
      known.push_back(shape_of(tensor));
    return;
  }
  if (known.size() != tensors.size())
    refuse(fmt::format("{} {}s, expected {}", tensors.size(), what, known.size()));
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (known[t] != shape_of(tensors[t]))
      refuse(fmt::format("{} {} is {}, expected {}", what, t, in_words(shape_of(tensors[t])),
                         in_words(known[t])));
}

Tensors Stage::run_layers(int first, int last, Tensors values, const CallContext& context) const {
  for (int layer = first; layer < last; ++layer)
    values = run_layer(setup_.layers[static_cast<std::size_t>(layer)],
                       *layers_[static_cast<std::size_t>(layer - place_.first)], layer,
                       setup_.base_seed, values, context);
  return values;
}

/// The outputs of one segment; of the last one on the last stage, the loss.
Tensors Stage::run_segment(std::size_t segment, const Tensors& inputs, const Instruction& i) {
  const auto& borders = bounds(i);
  Tensors outputs = run_layers(borders[segment], borders[segment + 1], inputs, context_of(i));
  if (!is_last() || segment + 2 < borders.size())
    return outputs;
  if (pass_.keep_outputs)
    kept_outputs_[static_cast<std::size_t>(i.microbatch)] = outputs;
  return {setup_.loss(setup_.precision == at::kFloat ? outputs : cast(outputs, at::kFloat),
                      buffers(i).targets)};
}

void Stage::note_loss(const Instruction& i, const at::Tensor& loss) {
  const auto microbatch = static_cast<std::size_t>(i.microbatch);
  if (loss.is_cpu())
    losses_[microbatch] = loss.item<double>();
  else
    unread_losses_.emplace_back(microbatch, captures_ ? loss.detach().clone() : loss.detach());
  if (!pass_.training)
    return;
  if (!loss_gradient_.defined()) {
    const int averaged = place_.step_every > 0 ? place_.step_every : pass_.microbatches;
    loss_gradient_ = at::full_like(loss, pass_.loss_scale / averaged);
  }
  buffers(i).output_gradients = {loss_gradient_};
}

/// Keeps what runs again needs: the inputs of the segments, if they run one at a time.
Tensors Stage::run_without_graph(const Instruction& i) {
  const at::NoGradGuard no_grad;
  StageBuffers& held = buffers(i);
  Tensors values = held.inputs;
  for (std::size_t segment = 0; segment + 1 < bounds(i).size(); ++segment) {
    if (held.parts.again && place_.recompute_layers > 0)
      held.segments.emplace_back().inputs =
          segment == 0 ? values : leaves_of(values, /*from_graph=*/false);
    values = run_segment(segment, values, i);
  }
  return values;
}

Tensors Stage::build_all(const Instruction& i) {
  StageBuffers& held = buffers(i);
  held.segments.clear();
  for (std::size_t segment = 0; segment + 1 < bounds(i).size(); ++segment) {
    Tensors inputs =
        segment == 0 ? held.inputs : leaves_of(held.segments.back().outputs, /*from_graph=*/true);
    held.segments.emplace_back().inputs = std::move(inputs);
    build_graph(i, segment);
  }
  return held.segments.back().outputs;
}

/// Runs a segment whose graph is not there yet.
void Stage::build_graph(const Instruction& i, std::size_t segment) {
  Segment& own = buffers(i).segments[segment];
  if (own.outputs.empty())
    own.outputs = run_segment(segment, own.inputs, i);
}

void Stage::forward(const Instruction& i, Parts parts) {
  StageBuffers& held = buffers(i);
  held.parts = parts;
  if (pass_.training && place_.step_every > 0)
    for (const at::Tensor& parameter : optimizer_->parameters())
      held.weights.push_back(parameter.variable_data());
  Tensors values =
      perform(i, [this, i] { return has_graph(buffers(i)) ? build_all(i) : run_without_graph(i); });
  if (is_last()) {
    note_loss(i, values.front());
  } else {
    check_shapes("output", values, output_shapes_, i.microbatch);
    held.outputs = std::move(values);
  }
  if (!pass_.training)
    held.inputs.clear();
}

/// Where they are captured they lie where those of the slot's next microbatch will, which comes
/// behind this one's backward, and so behind all that the next stage does with them.
Tensors Stage::outputs_for_next(const Instruction& i) {
  StageBuffers& held = buffers(i);
  Tensors outputs;
  for (const at::Tensor& output : held.outputs) {
    outputs.push_back(output.defined() ? output.detach() : output);
    if (pass_.training && can_have_gradient(output) && (output.requires_grad() || !has_graph(held)))
      outputs.back().requires_grad_();
  }
  held.outputs.clear();
  return outputs;
}

/// Of what runs again at a time the last part; the backward goes on with the others.
void Stage::recompute(const Instruction& i) {
  const WeightsOfForward weights(optimizer_->parameters(), buffers(i).weights);
  perform(i, [this, i] {
    if (place_.recompute_layers > 0)
      build_graph(i, buffers(i).segments.size() - 1);
    else
      build_all(i);
    return Tensors();
  });
}

void Stage::backward(const Instruction& i) {
  StageBuffers& held = buffers(i);
  const WeightsOfForward weights(optimizer_->parameters(), held.weights);
  held.input_gradients = with_gradients(i, [this, i] {
    StageBuffers& own = buffers(i);
    Tensors gradients = std::move(own.output_gradients);
    for (std::size_t nr = own.segments.size(); nr-- > 0;) {
      Segment& segment = own.segments[nr];
      build_graph(i, nr);
      full_backward(segment.outputs, gradients);
      gradients = gradients_of(segment.inputs);
      segment = Segment();
    }
    return gradients;
  });
  drop_activations(held);
}

void Stage::input_gradient(const Instruction& i) {
  StageBuffers& held = buffers(i);
  const WeightsOfForward weights(optimizer_->parameters(), held.weights);
  held.input_gradients = perform(i, [this, i] {
    StageBuffers& own = buffers(i);
    Tensors gradients = std::move(own.output_gradients);
    for (std::size_t nr = own.segments.size(); nr-- > 0;) {
      Segment& segment = own.segments[nr];
      build_graph(i, nr);
      gradients = segment.split.input_gradients(segment.outputs, gradients, segment.inputs);
      segment.outputs.clear();
      segment.inputs.clear();
    }
    return gradients;
  });
  held.inputs.clear();
}

void Stage::weight_gradient(const Instruction& i) {
  StageBuffers& held = buffers(i);
  const WeightsOfForward weights(optimizer_->parameters(), held.weights);
  with_gradients(i, [this, i] {
    std::vector<Segment>& segments = buffers(i).segments;
    for (std::size_t nr = segments.size(); nr-- > 0;)
      segments[nr].split.weight_gradients();
    return Tensors();
  });
  drop_activations(held);
}

void Stage::update(double learning_rate, const GradientUse& use) {
  if (place_.step_every > 0)
    optimizer_->leave_weights();
  optimizer_->step(learning_rate, use);
}

Tensors Stage::take_input_gradients(const Instruction& i) {
  Tensors gradients = std::move(buffers(i).input_gradients);
  // The slot's next microbatch may come before they have been read.
  return captures_ ? copies_of(std::move(gradients)) : gradients;
}

std::optional<std::size_t> Stage::tied_parameter(int layer) const {
  const LayerSpec& spec = setup_.layers[static_cast<std::size_t>(layer)];
  if (spec.tied_key.empty())
    return {};
  const auto named = layers_[static_cast<std::size_t>(layer - place_.first)]->named_parameters();
  const at::Tensor* const weight = named.find(spec.tied_weight);
  const auto& parameters = optimizer_->parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p)
    if (weight != nullptr && parameters[p].is_same(*weight))
      return p;
  return {};
}

}  // namespace pipewright::exec
