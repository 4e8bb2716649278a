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
#include "pipewright/exec/models/layer.hpp"
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
  return {loss_of(outputs, i)};
}

at::Tensor Stage::loss_of(const Tensors& outputs, const Instruction& i) {
  const auto microbatch = static_cast<std::size_t>(i.microbatch);
  if (pass_.keep_outputs)
    kept_outputs_[microbatch] = outputs;
  const at::Tensor loss = setup_.loss(
      setup_.precision == at::kFloat ? outputs : cast(outputs, at::kFloat), buffers(i).targets);
  if (loss.is_cpu())
    losses_[microbatch] = loss.item<double>();
  else
    unread_losses_.emplace_back(microbatch, loss.detach());
  if (!pass_.training)
    return loss;
  if (!loss_gradient_.defined()) {
    const int averaged = place_.step_every > 0 ? place_.step_every : pass_.microbatches;
    loss_gradient_ = at::full_like(loss, pass_.loss_scale / averaged);
  }
  buffers(i).output_gradients = {loss_gradient_};
  return loss;
}

/// Keeps what runs again needs: the inputs of the segments, if they run one at a time.
void Stage::run_without_graph(const Instruction& i) {
  const at::NoGradGuard no_grad;
  StageBuffers& held = buffers(i);
  held.outputs = held.inputs;
  for (std::size_t segment = 0; segment + 1 < bounds(i).size(); ++segment) {
    if (held.again && place_.recompute_layers > 0)
      held.segments.emplace_back().inputs =
          segment == 0 ? held.outputs : leaves_of(held.outputs, /*from_graph=*/false);
    held.outputs = run_segment(segment, held.outputs, i);
  }
}

void Stage::build_all(const Instruction& i) {
  StageBuffers& held = buffers(i);
  held.segments.clear();
  for (std::size_t segment = 0; segment + 1 < bounds(i).size(); ++segment) {
    Tensors inputs =
        segment == 0 ? held.inputs : leaves_of(held.segments.back().outputs, /*from_graph=*/true);
    held.segments.emplace_back().inputs = std::move(inputs);
    build_graph(i, segment);
  }
}

/// Runs a segment whose graph is not there yet.
void Stage::build_graph(const Instruction& i, std::size_t segment) {
  Segment& own = buffers(i).segments[segment];
  if (own.outputs.empty())
    own.outputs = run_segment(segment, own.inputs, i);
}

void Stage::forward(const Instruction& i, bool again) {
  StageBuffers& held = buffers(i);
  held.again = again;
  if (pass_.training && place_.step_every > 0)
    for (const at::Tensor& parameter : optimizer_->parameters())
      held.weights.push_back(parameter.variable_data());
  const bool has_graph = pass_.training && !again;
  if (has_graph)
    build_all(i);
  else
    run_without_graph(i);
  if (!is_last())
    check_shapes("output", has_graph ? held.segments.back().outputs : held.outputs, output_shapes_,
                 i.microbatch);
  if (!pass_.training)
    held.inputs.clear();
}

Tensors Stage::outputs_for_next(const Instruction& i) {
  StageBuffers& held = buffers(i);
  const bool has_graph = pass_.training && !held.again;
  Tensors outputs;
  for (const at::Tensor& output : has_graph ? held.segments.back().outputs : held.outputs) {
    outputs.push_back(output.defined() ? output.detach() : output);
    if (pass_.training && can_have_gradient(output) && (output.requires_grad() || !has_graph))
      outputs.back().requires_grad_();
  }
  held.outputs.clear();
  return outputs;
}

/// Of what runs again at a time the last part; the backward goes on with the others.
void Stage::recompute(const Instruction& i) {
  StageBuffers& held = buffers(i);
  const WeightsOfForward weights(optimizer_->parameters(), held.weights);
  if (place_.recompute_layers > 0)
    build_graph(i, held.segments.size() - 1);
  else
    build_all(i);
}

void Stage::backward(const Instruction& i) {
  StageBuffers& held = buffers(i);
  const WeightsOfForward weights(optimizer_->parameters(), held.weights);
  gradients_->begin(pass_.first_microbatch + i.microbatch);
  Tensors gradients = std::move(held.output_gradients);
  for (std::size_t segment = held.segments.size(); segment-- > 0;) {
    Segment& own = held.segments[segment];
    build_graph(i, segment);
    full_backward(own.outputs, gradients);
    gradients = gradients_of(own.inputs);
    own = Segment();
  }
  gradients_->end(pass_.first_microbatch + i.microbatch);
  held.input_gradients = std::move(gradients);
  drop_activations(held);
}

void Stage::input_gradient(const Instruction& i) {
  StageBuffers& held = buffers(i);
  const WeightsOfForward weights(optimizer_->parameters(), held.weights);
  Tensors gradients = std::move(held.output_gradients);
  for (std::size_t segment = held.segments.size(); segment-- > 0;) {
    Segment& own = held.segments[segment];
    build_graph(i, segment);
    gradients = own.split.input_gradients(own.outputs, gradients, own.inputs);
    own.outputs.clear();
    own.inputs.clear();
  }
  held.inputs.clear();
  held.input_gradients = std::move(gradients);
}

void Stage::weight_gradient(const Instruction& i) {
  StageBuffers& held = buffers(i);
  const WeightsOfForward weights(optimizer_->parameters(), held.weights);
  gradients_->begin(pass_.first_microbatch + i.microbatch);
  for (std::size_t segment = held.segments.size(); segment-- > 0;)
    held.segments[segment].split.weight_gradients();
  gradients_->end(pass_.first_microbatch + i.microbatch);
  drop_activations(held);
}

void Stage::update(double learning_rate, const GradientUse& use) {
  if (place_.step_every > 0)
    optimizer_->leave_weights();
  optimizer_->step(learning_rate, use);
}

Tensors Stage::take_input_gradients(const Instruction& i) {
  return std::move(buffers(i).input_gradients);
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
