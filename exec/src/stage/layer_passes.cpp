#include "layer_passes.hpp"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "pipewright/exec/stage/layer_observer.hpp"
#include "pipewright/exec/training/buffer_restorer.hpp"

namespace pipewright::exec {

using plan::InstructionKind;

namespace {

bool can_have_gradient(const at::Tensor& tensor) {
  return tensor.defined() &&
         (at::isFloatingType(tensor.scalar_type()) || at::isComplexType(tensor.scalar_type()));
}

bool has_gradient(const at::Tensor& leaf) { return leaf.defined() && leaf.requires_grad(); }

Tensors gradients_of(const Tensors& leaves) {
  Tensors gradients;
  for (const at::Tensor& leaf : leaves)
    gradients.push_back(has_gradient(leaf) ? leaf.grad() : at::Tensor());
  return gradients;
}

/// Cuts a stage after every `count` layers in front of layer `last`.
std::vector<int> cut_every(int count, int first, int last, int end) {
  std::vector<int> bounds;
  for (int layer = first; layer < last; layer += count)
    bounds.push_back(layer);
  bounds.push_back(end);
  return bounds;
}

}  // namespace

LayerPasses::LayerPasses(const StageSpec& spec, const StageLayers& layers, const Pass& pass)
    : spec_(spec), layers_(layers), pass_(pass) {
  if (spec.observer != nullptr) {
    graph_bounds_ = recompute_bounds_ = cut_every(1, spec.first, layers.end(), layers.end());
    return;
  }
  recompute_bounds_ =
      cut_every(std::max(1, spec.recompute_layers), spec.first, spec.last, layers.end());
  graph_bounds_ = {spec.first, layers.end()};
  // The model's input has no gradient: an input-gradient pass leads back to the first layer, whose
  // own backward is all weight gradient.
  const bool splits = std::any_of(spec.backwards.begin(), spec.backwards.end(),
                                  [](const auto& entry) { return entry.second.split; });
  if (layers.are_first() && splits && spec.last - spec.first > 1)
    graph_bounds_.insert(graph_bounds_.begin() + 1, spec.first + 1);
}

void LayerPasses::begin(bool captured) {
  captured_ = captured;
  kept_outputs_.clear();
  if (pass_.keep_outputs && layers_.are_last())
    kept_outputs_.resize(static_cast<std::size_t>(pass_.microbatches));
}

Tensors LayerPasses::leaves_of(const Tensors& values, Gradients wanted) {
  Tensors leaves;
  for (const at::Tensor& value : values) {
    leaves.push_back(value.defined() ? value.detach() : value);
    if (wanted != Gradients::None && can_have_gradient(value) &&
        (wanted == Gradients::OfAll || value.requires_grad()))
      leaves.back().requires_grad_();
  }
  return leaves;
}

/// Returns which of the tensors in front of a layer get a gradient.
LayerPasses::Gradients LayerPasses::gradients_before(const MicrobatchState& held, int layer) const {
  if (!pass_.training)
    return Gradients::None;
  const bool are_needed = layers_.first_trained() < layer ||
                          std::any_of(held.inputs.begin(), held.inputs.end(), has_gradient);
  return held.backward.recomputed && are_needed ? Gradients::OfAll : Gradients::OfGraph;
}

/// Returns the first of the layers that are recomputed together with this one. The loss belongs to
/// the last layer's group.
int LayerPasses::group_begin(int layer) const {
  if (spec_.recompute_layers == 0)
    return spec_.first;
  const int in_stage = std::min(layer, spec_.last - 1) - spec_.first;
  return spec_.first + in_stage / spec_.recompute_layers * spec_.recompute_layers;
}

template <class Work>
void LayerPasses::observe(const MicrobatchState& held, InstructionKind part, std::size_t segment,
                          const Work& work) const {
  observed(spec_.observer, held.forward, part, bounds(held)[segment], work);
}

CallContext LayerPasses::context_of(const MicrobatchState& held, int layer) const {
  CallContext context{pass_.step, pass_.first_microbatch + held.forward.microbatch, pass_.training,
                      spec_.selective_recompute, &held.keywords};
  if (captured_ && layer != layers_.loss())
    context.step = context.microbatch = CallNumber::hidden_from(layers_.spec_of(layer).name);
  return context;
}

/// Returns the outputs of one segment; of the last one on the last stage, the loss.
Tensors LayerPasses::run_segment(const MicrobatchState& held, InstructionKind part,
                                 std::size_t segment, Tensors values) {
  observe(held, part, segment, [&] {
    for (int layer = bounds(held)[segment]; layer < bounds(held)[segment + 1]; ++layer) {
      if (layer == layers_.loss() && pass_.keep_outputs)
        kept_outputs_[static_cast<std::size_t>(held.forward.microbatch)] = values;
      if (layer == layers_.loss() && !pass_.loss)
        return;
      values = layers_.run(layer, values, held.targets, context_of(held, layer));
    }
  });
  return values;
}

Tensors LayerPasses::forward(MicrobatchState& held) {
  return pass_.training && !held.backward.recomputed ? run_with_graph(held)
                                                     : run_without_graph(held);
}

Tensors LayerPasses::run_without_graph(MicrobatchState& held) {
  const at::NoGradGuard no_grad;
  const std::size_t segments = bounds(held).size() - 1;
  const bool keeps_inputs = held.backward.recomputed && spec_.recompute_layers > 0;
  if (keeps_inputs)
    held.segments.resize(segments);
  Tensors values = held.inputs;
  for (std::size_t segment = 0; segment < segments; ++segment) {
    const int layer = bounds(held)[segment];
    if (keeps_inputs && group_begin(layer) == layer)
      held.segments[segment].inputs =
          segment == 0 ? values : leaves_of(values, gradients_before(held, layer));
    values = run_segment(held, InstructionKind::Forward, segment, values);
  }
  return values;
}

Tensors LayerPasses::run_with_graph(MicrobatchState& held) {
  held.segments.clear();
  held.segments.resize(bounds(held).size() - 1);
  held.segments.front().inputs = held.inputs;
  build_graphs(held, 0, held.segments.size() - 1);
  return held.segments.back().outputs;
}

/// Builds the graphs of consecutive segments, from the inputs of the first one.
void LayerPasses::build_graphs(MicrobatchState& held, std::size_t first, std::size_t last) {
  const bool again = held.backward.recomputed;
  const auto part = again ? InstructionKind::Recompute : InstructionKind::Forward;
  const int begin = bounds(held)[first], end = std::min(bounds(held)[last + 1], spec_.last);
  const BufferRestorer buffers(layers_.buffers(begin, again ? end : begin));
  for (std::size_t segment = first; segment <= last; ++segment) {
    SegmentGraph& own = held.segments[segment];
    if (segment > first)
      own.inputs = leaves_of(held.segments[segment - 1].outputs, Gradients::OfGraph);
    own.outputs = run_segment(held, part, segment, own.inputs);
  }
}

/// Recomputes the group of layers that ends with this segment, unless its graph still exists.
void LayerPasses::recompute_group(MicrobatchState& held, std::size_t last) {
  if (!held.segments[last].outputs.empty())
    return;
  std::size_t first = last;
  while (bounds(held)[first] > group_begin(bounds(held)[last]))
    --first;
  build_graphs(held, first, last);
}

Tensors LayerPasses::recompute(MicrobatchState& held) {
  if (spec_.recompute_layers > 0)
    recompute_group(held, held.segments.size() - 1);
  else
    run_with_graph(held);
  return {};
}

Tensors LayerPasses::backward(MicrobatchState& held) {
  Tensors gradients = std::move(held.output_gradients);
  for (std::size_t nr = held.segments.size(); nr-- > 0;) {
    recompute_group(held, nr);
    observe(held, InstructionKind::Backward, nr, [&] {
      SegmentGraph& segment = held.segments[nr];
      full_backward(segment.outputs, gradients);
      gradients = gradients_of(segment.inputs);
      segment = SegmentGraph();
    });
  }
  return gradients;
}

Tensors LayerPasses::input_gradient(MicrobatchState& held) {
  Tensors gradients = std::move(held.output_gradients);
  for (std::size_t nr = held.segments.size(); nr-- > 0;) {
    recompute_group(held, nr);
    SegmentGraph& segment = held.segments[nr];
    const auto work = [&] {
      gradients = segment.split.input_gradients(segment.outputs, gradients, segment.inputs);
      segment.outputs.clear();
      segment.inputs.clear();
    };
    // If no gradient reaches its input, all of a layer's backward is weight gradient.
    if (std::any_of(segment.inputs.begin(), segment.inputs.end(), has_gradient))
      observe(held, InstructionKind::InputGradient, nr, work);
    else
      work();
  }
  return gradients;
}

Tensors LayerPasses::weight_gradient(MicrobatchState& held) {
  for (std::size_t nr = held.segments.size(); nr-- > 0;)
    observe(held, InstructionKind::WeightGradient, nr,
            [&] { held.segments[nr].split.weight_gradients(); });
  return {};
}

Tensors LayerPasses::take_outputs(MicrobatchState& held) const {
  return leaves_of(std::exchange(held.outputs, {}), gradients_before(held, spec_.last));
}

}  // namespace pipewright::exec
