#include "pipewright/exec/stage/stage.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "captured_slot.hpp"
#include "gradient_sums.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/cpu/cpu_branch.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/stage/layer_observer.hpp"
#include "pipewright/exec/stage/split_backward.hpp"
#include "pipewright/exec/stage/stage_state.hpp"
#include "pipewright/exec/training/buffers_as_before.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"
#include "scattered_gradients.hpp"

namespace pipewright::exec {

using plan::Instruction;
using plan::InstructionKind;

/// One graph of a microbatch: consecutive layers from leaves to outputs.
struct Stage::Segment {
  Tensors inputs;   // leaves; their gradients are for the segment or the stage before
  Tensors outputs;  // roots of the graph; on the last stage the microbatch's loss
  SplitBackward split;
};

/// What a stage holds for one microbatch, from its first instruction to its last.
struct Stage::Buffers {
  Tensors inputs;
  Tensors targets;  // last stage
  NamedTensors keywords;
  double weight = 1;  // last stage: of the loss in that of the batch
  std::vector<Segment> segments;
  Tensors outputs;           // until the next stage takes them over; on the last stage the loss
  BackwardKind backward;     // that follows the forward
  Tensors weights;           // of its forward, where they may change before its backward
  Tensors output_gradients;  // from the stage after; on the last stage of the loss
  Tensors input_gradients;

  /// The backward is over; the input's gradients stay until the stage before takes them over.
  void drop_activations() {
    Tensors gradients = std::move(input_gradients);
    *this = Buffers();
    input_gradients = std::move(gradients);
  }
};

namespace {

bool can_have_gradient(const at::Tensor& tensor) {
  return tensor.defined() &&
         (at::isFloatingType(tensor.scalar_type()) || at::isComplexType(tensor.scalar_type()));
}

/// Which of some tensors get a gradient, beside those that are in a graph and say so.
enum class Gradients { OfGraph, OfAll };

/// The same values as the leaves of a new graph. What is computed again has no graph yet, so there
/// every tensor that can have a gradient gets one, if anything before it needs one.
Tensors leaves_of(const Tensors& values, Gradients wanted) {
  Tensors leaves;
  for (const at::Tensor& value : values) {
    leaves.push_back(value.defined() ? value.detach() : value);
    if (can_have_gradient(value) && (wanted == Gradients::OfAll || value.requires_grad()))
      leaves.back().requires_grad_();
  }
  return leaves;
}

bool has_gradient(const at::Tensor& leaf) { return leaf.defined() && leaf.requires_grad(); }

Tensors gradients_of(const Tensors& leaves) {
  Tensors gradients;
  for (const at::Tensor& leaf : leaves)
    gradients.push_back(has_gradient(leaf) ? leaf.grad() : at::Tensor());
  return gradients;
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

using Shape = std::pair<at::ScalarType, std::vector<std::int64_t>>;

Shape shape_of(const at::Tensor& tensor) {
  if (!tensor.defined())
    return {at::ScalarType::Undefined, {}};
  return {tensor.scalar_type(), tensor.sizes().vec()};
}

std::string in_words(const Shape& shape) {
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

/// Of layers [first, last).
Tensors buffers_of(const std::vector<Tensors>& by_layer, int first, int last) {
  Tensors all;
  for (int layer = first; layer < last; ++layer)
    for (const at::Tensor& buffer : by_layer[static_cast<std::size_t>(layer)])
      all.push_back(buffer);
  return all;
}

std::vector<int> in_order(const std::map<int, std::vector<int>>& by_group) {
  std::vector<int> all;
  for (const auto& [group, members] : by_group)
    all.insert(all.end(), members.begin(), members.end());
  std::sort(all.begin(), all.end());
  return all;
}

/// What a tensor's memory is, whoever looks at it: tensors that autograd has saved do so, too.
void resize_memory(const at::Tensor& tensor, std::size_t bytes) {
  c10::StorageImpl* const memory = tensor.storage().unsafeGetStorageImpl();
  memory->set_data_ptr_noswap(memory->allocator()->allocate(bytes));
  memory->set_nbytes(bytes);
}

void require_shardable(const at::Tensor& parameter, const std::string& name) {
  const auto& memory = parameter.storage();
  if (!parameter.is_contiguous() || memory.nbytes() != parameter.nbytes() ||
      memory.allocator() == nullptr)
    throw plan::InputError(fmt::format(
        "parameter {}: it shares its memory with another tensor, so that its stage's parameters "
        "cannot be gathered and let go of: use ZeRO stage 1 or 2",
        name));
}

/// Those of a layer whose parameters are the last ones of `names`.
void add_aliases(Layer& layer, const std::vector<std::string>& names, std::size_t first_of_layer,
                 GradientSources& sources) {
  for (const ParameterAlias& alias : layer.aliases()) {
    const auto named = std::find(names.begin() + static_cast<std::ptrdiff_t>(first_of_layer),
                                 names.end(), alias.parameter);
    if (named == names.end()) {  // it is frozen
      at::Tensor(alias.leaf).set_requires_grad(false);
      continue;
    }
    sources.aliases.push_back(
        {static_cast<std::size_t>(named - names.begin()), alias.source, alias.leaf});
  }
}

/// What each parameter is called everywhere.
std::vector<RuledParameter> named_by(const TrainingSetup& setup,
                                     const std::vector<at::Tensor>& parameters,
                                     const std::vector<int>& layers,
                                     const std::vector<std::string>& names) {
  std::vector<RuledParameter> named;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    auto [layer, name] = owner_name(setup.layers, layers[p], names[p]);
    named.push_back({std::move(layer), std::move(name), parameters[p].sizes().vec()});
  }
  return named;
}

/// The rule of each parameter; empty: all have the same.
std::vector<ParameterRule> rules_of(const TrainingSetup& setup,
                                    const std::vector<RuledParameter>& named) {
  std::vector<ParameterRule> rules;
  for (std::size_t p = 0; p < named.size() && setup.optimizer.rule; ++p)
    rules.push_back(setup.optimizer.rule(named[p]));
  return rules;
}

/// Those of experts that pipelines share out have aliases.
std::vector<bool> of_experts(const GradientSources& sources, std::size_t parameters) {
  std::vector<bool> found(parameters, false);
  for (const GradientAlias& alias : sources.aliases)
    found[alias.parameter] = true;
  return found;
}

/// Whether there is a plan with the same bits in which ranks have parts of parameters.
bool may_be_cut(const TrainingSetup& setup, const ShardPlace& place) {
  return place.groups > 1 || std::any_of(setup.layers.begin(), setup.layers.end(),
                                         [](const LayerSpec& layer) { return layer.has_experts; });
}

}  // namespace

double mean_loss(const std::vector<MicrobatchLoss>& losses) {
  double sum = 0;
  for (const MicrobatchLoss& own : losses)
    sum += own.loss * own.weight;
  return sum / static_cast<double>(losses.size());
}

Stage::Stage(StageSpec spec, const TrainingSetup& setup) : spec_(std::move(spec)), setup_(setup) {
  if (spec_.device.is_cpu())
    use_cpu_branch(setup.cpu_branch);
  else if (setup.exact)
    compute_reproducibly();
  std::vector<at::Tensor> parameters;
  GradientSources sources{.own = spec_.place.experts.index,
                          .groups_of_each = spec_.groups_of_pipeline};
  for (int layer = spec_.first; layer < spec_.last; ++layer) {
    layers_.push_back(build_layer(setup, layer, spec_.device, spec_.place));
    takes_keywords_ = takes_keywords_ || !spec_of(layer).keywords.empty();
    const std::size_t first_of_layer = name_of_parameter_.size();
    for (const auto& named : layers_.back()->named_parameters())
      if (named.value().requires_grad()) {
        parameters.push_back(named.value());
        layer_of_parameter_.push_back(layer);
        name_of_parameter_.push_back(named.key());
        cut_of_parameter_.push_back(find_cut(*layers_.back(), named.key()));
      }
    add_aliases(*layers_.back(), name_of_parameter_, first_of_layer, sources);
    // Not the buffers themselves, whose changes autograd counts.
    Tensors& buffers = buffers_of_layer_.emplace_back();
    for (const at::Tensor& buffer : layers_.back()->buffers())
      buffers.push_back(buffer.variable_data());
  }
  auto named = named_by(setup, parameters, layer_of_parameter_, name_of_parameter_);
  const auto rules = rules_of(setup, named);
  first_trained_ = layer_of_parameter_.empty() ? layer_end() : layer_of_parameter_.front();
  optimizer_ = std::make_unique<Optimizer>(
      parameters, setup.optimizer, spec_.shard,
      may_be_cut(setup, spec_.place) ? Places::MayDiffer : Places::AreKept,
      of_experts(sources, parameters.size()), rules, std::move(named));
  const bool exact = setup.exact && spec_.step_every == 0;
  if (spec_.shard.gradients)
    scattered_ =
        std::make_unique<ScatteredGradients>(std::move(parameters), optimizer_->gradients(),
                                             in_order(spec_.microbatches), exact, sources);
  else
    gradients_ = std::make_unique<GradientSums>(std::move(parameters), spec_.microbatches, exact,
                                                std::move(sources));

  spec_.captures = spec_.captures && spec_.observer == nullptr;
  for (int layer = spec_.first; layer < spec_.last; ++layer)
    spec_.captures = spec_.captures && can_be_replayed(spec_of(layer));
  cut_segments();
  if (!spec_.shard.parameters)
    return;
  for (std::size_t p = 0; p < name_of_parameter_.size(); ++p)
    require_shardable(optimizer_->parameters()[p], name_of_parameter_[p]);
  let_go();
}

void Stage::make_room() {
  for (std::size_t p = 0; p < optimizer_->parameters().size(); ++p)
    if (const at::Tensor& parameter = optimizer_->parameters()[p]; optimizer_->is_divided(p))
      resize_memory(parameter, parameter.nbytes());
}

void Stage::let_go() {
  for (std::size_t p = 0; p < optimizer_->parameters().size(); ++p)
    if (optimizer_->is_divided(p))
      resize_memory(optimizer_->parameters()[p], 0);
}

Stage::Stage(Stage&&) noexcept = default;
Stage::~Stage() = default;

void Stage::cut_segments() {
  const auto cut_every = [this](int layers, int last) {
    std::vector<int> bounds;
    for (int layer = spec_.first; layer < last; layer += layers)
      bounds.push_back(layer);
    bounds.push_back(layer_end());
    return bounds;
  };
  if (spec_.observer != nullptr) {
    graph_bounds_ = rerun_bounds_ = cut_every(1, layer_end());
    return;
  }
  rerun_bounds_ = cut_every(std::max(1, spec_.recompute_layers), spec_.last);
  graph_bounds_ = {spec_.first, layer_end()};
  // The model's input has no gradient: I is what leads back to the first layer, whose own backward
  // is all W.
  const bool splits = std::any_of(spec_.backwards.begin(), spec_.backwards.end(),
                                  [](const auto& entry) { return entry.second.split; });
  if (is_first() && splits && spec_.last - spec_.first > 1)
    graph_bounds_.insert(graph_bounds_.begin() + 1, spec_.first + 1);
}

/// The first of the layers that run again at a time with this one; the loss does so with the last.
int Stage::rerun_begin(int layer) const {
  if (spec_.recompute_layers == 0)
    return spec_.first;
  const int in_stage = std::min(layer, spec_.last - 1) - spec_.first;
  return spec_.first + in_stage / spec_.recompute_layers * spec_.recompute_layers;
}

Stage::Buffers& Stage::buffers(const Instruction& i) {
  return slots_[static_cast<std::size_t>(i.slot)];
}

const Tensors& Stage::inputs(const Instruction& i) const {
  return slots_[static_cast<std::size_t>(i.slot)].inputs;
}

const Tensors& Stage::targets(const Instruction& i) const {
  return slots_[static_cast<std::size_t>(i.slot)].targets;
}

BackwardKind Stage::backward_kind(const Instruction& i) const {
  const auto found = spec_.backwards.find(i.microbatch);
  return pass_.training && found != spec_.backwards.end() ? found->second : BackwardKind();
}

const std::vector<int>& Stage::bounds(const Buffers& held) const {
  return held.backward.recomputed && spec_.recompute_layers > 0 ? rerun_bounds_ : graph_bounds_;
}

void Stage::expect_shapes(const Tensors& inputs, const Tensors& outputs) {
  const auto shapes_of = [](const Tensors& tensors) {
    std::vector<PayloadShape> shapes;
    for (const at::Tensor& tensor : tensors)
      shapes.push_back(shape_of(tensor));
    return shapes;
  };
  known_inputs_ = shapes_of(inputs);
  known_outputs_ = shapes_of(outputs);
}

void Stage::begin(const Pass& pass, int slots) {
  pass_ = pass;
  slots_.clear();
  slots_.resize(static_cast<std::size_t>(slots));
  losses_.assign(static_cast<std::size_t>(pass.microbatches), {});
  loss_gradient_.reset();
  kept_outputs_.clear();
  if (pass.keep_outputs && is_last())
    kept_outputs_.resize(static_cast<std::size_t>(pass.microbatches));
  // An evaluation may have microbatches of its own size.
  input_shapes_ = pass.training ? known_inputs_ : std::vector<PayloadShape>();
  output_shapes_ = pass.training ? known_outputs_ : std::vector<PayloadShape>();
  for (const auto& layer : layers_)
    if (layer->is_training() != pass.training)
      layer->train(pass.training);
  // In the first pass LibTorch sets up what kernels need: that cannot be captured.
  captures_ = spec_.captures && pass.training && !pass.keep_outputs && has_trained_;
  has_trained_ = has_trained_ || pass.training;
}

void Stage::end() {
  slots_.clear();
  read_losses();
}

void Stage::read_losses() {
  for (const auto& [microbatch, loss] : unread_losses_)
    losses_[microbatch].loss = loss.item<double>();
  unread_losses_.clear();
}

CallContext Stage::context_of(const Instruction& i, int layer) const {
  CallContext context{pass_.step, pass_.first_microbatch + i.microbatch, pass_.training,
                      spec_.selective_recompute,
                      &slots_[static_cast<std::size_t>(i.slot)].keywords};
  if (captures_ && layer != loss_layer())
    context.step = context.microbatch = CallNumber::hidden_from(spec_of(layer).name);
  return context;
}

const Computed& Stage::replay(const Instruction& i, const std::function<Computed()>& part) {
  const auto slot = static_cast<std::size_t>(i.slot);
  captured_.resize(std::max(captured_.size(), slot + 1));
  if (!captured_[slot])
    captured_[slot] = std::make_unique<CapturedSlot>(spec_.account);
  Buffers& held = buffers(i);
  captured_[slot]->settle({&held.inputs, &held.targets, &held.output_gradients});
  return captured_[slot]->perform(i.kind, held.backward, part);
}

/// A layer's part of an instruction, for whoever observes it.
template <class Work>
void Stage::observed(const Instruction& i, InstructionKind part, int layer,
                     const Work& work) const {
  if (spec_.observer == nullptr)
    return work();
  const Instruction own{part, i.stage, i.microbatch, i.slot};
  spec_.observer->begin(own, layer);
  work();
  spec_.observer->end(own, layer);
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
  if (scattered_) {
    scattered_->begin();
    Tensors values = part();
    scattered_->end();
    return values;
  }
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

Reading Stage::reading(const Instruction& i) const {
  return {pass_.data, pass_.step, pass_.first_microbatch + i.microbatch, is_first(),
          is_last() && pass_.loss};
}

void Stage::load(const Instruction& i) {
  Reading first = reading(i), last = first;
  first.targets = last.inputs = false;
  if (first.inputs)
    observed(i, i.kind, spec_.first, [&] { take_inputs(i, read(first).inputs); });
  if (last.targets)
    observed(i, i.kind, loss_layer(), [&] {
      ReadData data = read(last);
      take_targets(i, std::move(data.targets), data.weight);
    });
}

void Stage::load(const Instruction& i, ReadData data) {
  if (is_first())
    take_inputs(i, std::move(data.inputs));
  if (is_last() && pass_.loss)
    take_targets(i, std::move(data.targets), data.weight);
}

void Stage::take_inputs(const Instruction& i, Tensors inputs) {
  buffers(i).inputs = cast(all_on(spec_.device, std::move(inputs)), setup_.precision);
}

void Stage::take_targets(const Instruction& i, Tensors targets, double weight) {
  buffers(i).targets = all_on(spec_.device, std::move(targets));
  buffers(i).weight = weight;
}

/// They come with the data to whatever stage has a layer that names them.
void Stage::take_keywords(const Instruction& i) {
  if (!takes_keywords_ || pass_.data == nullptr)
    return;
  for (auto& [name, value] :
       pass_.data->keywords(pass_.step, pass_.first_microbatch + i.microbatch))
    buffers(i).keywords[name] = cast(all_on(spec_.device, {value}), setup_.precision).front();
}

void Stage::receive_inputs(const Instruction& i, Tensors inputs) {
  check_shapes("input", inputs, input_shapes_, i.microbatch);
  buffers(i).inputs = std::move(inputs);
}

void Stage::receive_gradients(const Instruction& i, Tensors output_gradients) {
  buffers(i).output_gradients = std::move(output_gradients);
}

void Stage::check_shapes(const char* what, const Tensors& tensors, std::vector<PayloadShape>& known,
                         int microbatch) const {
  if (spec_.dynamic_shapes)
    return;
  const auto refuse = [&](const std::string& rest) {
    throw plan::InputError(
        fmt::format("stage {}, microbatch {}: {}; shapes that change from "
                    "microbatch to microbatch need `dynamic_shapes`",
                    spec_.index, microbatch, rest));
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

Tensors Stage::run_layer(int layer, const Tensors& inputs, const Tensors& targets,
                         const CallContext& context) const {
  if (layer == loss_layer())
    return {loss_of(setup_,
                    c10::elementSize(setup_.precision) < 4 ? cast(inputs, at::kFloat) : inputs,
                    targets, spec_.place)};
  return exec::run_layer(spec_of(layer), *layers_[static_cast<std::size_t>(layer - spec_.first)],
                         layer, setup_.base_seed, inputs, context);
}

/// The outputs of one segment; of the last one on the last stage, the loss.
Tensors Stage::run_segment(std::size_t segment, const Tensors& inputs, const Instruction& i,
                           InstructionKind part) {
  Buffers& held = buffers(i);
  const auto& borders = bounds(held);
  Tensors values = inputs;
  observed(i, part, borders[segment], [&] {
    for (int layer = borders[segment]; layer < borders[segment + 1]; ++layer) {
      if (layer == loss_layer() && pass_.keep_outputs)
        kept_outputs_[static_cast<std::size_t>(i.microbatch)] = values;
      if (layer == loss_layer() && !pass_.loss)
        return;
      values = run_layer(layer, values, held.targets, context_of(i, layer));
    }
  });
  return values;
}

void Stage::note_loss(const Instruction& i, const at::Tensor& loss) {
  const auto microbatch = static_cast<std::size_t>(i.microbatch);
  const double weight = buffers(i).weight;
  losses_[microbatch] = {0, weight, true};
  if (loss.is_cpu())
    losses_[microbatch].loss = loss.item<double>();
  else
    unread_losses_.emplace_back(microbatch, captures_ ? loss.detach().clone() : loss.detach());
  if (!pass_.training)
    return;
  if (!loss_gradient_.defined()) {
    const int averaged = spec_.step_every > 0 ? spec_.step_every : pass_.microbatches;
    loss_gradient_ = at::full_like(loss, pass_.loss_scale / averaged);
  }
  buffers(i).output_gradients = {weight == 1 ? loss_gradient_ : loss_gradient_ * weight};
}

/// Whether what comes into this layer may depend on something that is trained, or on an input that
/// the stage before wants the gradient of.
bool Stage::has_gradient_before(const Buffers& held, int layer) const {
  return first_trained_ < layer ||
         std::any_of(held.inputs.begin(), held.inputs.end(), has_gradient);
}

/// Keeps what runs again needs: the inputs of the segments, if not all of them run at a time.
Tensors Stage::run_without_graph(const Instruction& i) {
  const at::NoGradGuard no_grad;
  Buffers& held = buffers(i);
  const auto& borders = bounds(held);
  const bool keeps_inputs = held.backward.recomputed && spec_.recompute_layers > 0;
  if (keeps_inputs)
    held.segments.resize(borders.size() - 1);
  Tensors values = held.inputs;
  for (std::size_t segment = 0; segment + 1 < borders.size(); ++segment) {
    if (keeps_inputs && rerun_begin(borders[segment]) == borders[segment])
      held.segments[segment].inputs =
          segment == 0
              ? values
              : leaves_of(values, has_gradient_before(held, borders[segment]) ? Gradients::OfAll
                                                                              : Gradients::OfGraph);
    values = run_segment(segment, values, i, InstructionKind::Forward);
  }
  return values;
}

Tensors Stage::run_with_graph(const Instruction& i) {
  Buffers& held = buffers(i);
  held.segments.clear();
  held.segments.resize(bounds(held).size() - 1);
  held.segments.front().inputs = held.inputs;
  build_graphs(i, 0, held.segments.size() - 1);
  return held.segments.back().outputs;
}

/// The graphs of consecutive segments, from the inputs of the first one.
void Stage::build_graphs(const Instruction& i, std::size_t first, std::size_t last) {
  Buffers& held = buffers(i);
  const bool again = held.backward.recomputed;
  const auto part = again ? InstructionKind::Recompute : InstructionKind::Forward;
  const int begin = bounds(held)[first], end = std::min(bounds(held)[last + 1], spec_.last);
  const BuffersAsBefore buffers(
      buffers_of(buffers_of_layer_, begin - spec_.first, (again ? end : begin) - spec_.first));
  for (std::size_t segment = first; segment <= last; ++segment) {
    Segment& own = held.segments[segment];
    if (segment > first)
      own.inputs = leaves_of(held.segments[segment - 1].outputs, Gradients::OfGraph);
    own.outputs = run_segment(segment, own.inputs, i, part);
  }
}

/// Runs again what does so at a time and ends with this segment; nothing where its graph is there.
void Stage::run_again_up_to(const Instruction& i, std::size_t segment) {
  Buffers& held = buffers(i);
  if (!held.segments[segment].outputs.empty())
    return;
  const auto& borders = bounds(held);
  std::size_t first = segment;
  while (borders[first] > rerun_begin(borders[segment]))
    --first;
  build_graphs(i, first, segment);
}

void Stage::forward(const Instruction& i) {
  Buffers& held = buffers(i);
  held.backward = backward_kind(i);
  take_keywords(i);
  if (pass_.training && spec_.step_every > 0)
    for (const at::Tensor& parameter : optimizer_->parameters())
      held.weights.push_back(parameter.variable_data());
  Tensors values =
      perform(i, [this, i] { return has_graph(i) ? run_with_graph(i) : run_without_graph(i); });
  if (is_last()) {
    if (pass_.loss)
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
  Buffers& held = buffers(i);
  Tensors outputs;
  for (const at::Tensor& output : held.outputs) {
    outputs.push_back(output.defined() ? output.detach() : output);
    if (pass_.training && can_have_gradient(output) &&
        (output.requires_grad() || (!has_graph(i) && has_gradient_before(held, spec_.last))))
      outputs.back().requires_grad_();
  }
  held.outputs.clear();
  return outputs;
}

/// The last of what runs again at a time; the backward goes on with the others.
void Stage::recompute(const Instruction& i) {
  const WeightsOfForward weights(optimizer_->parameters(), buffers(i).weights);
  perform(i, [this, i] {
    if (spec_.recompute_layers > 0)
      run_again_up_to(i, buffers(i).segments.size() - 1);
    else
      run_with_graph(i);
    return Tensors();
  });
}

void Stage::backward(const Instruction& i) {
  Buffers& held = buffers(i);
  const WeightsOfForward weights(optimizer_->parameters(), held.weights);
  held.input_gradients = with_gradients(i, [this, i] {
    Buffers& own = buffers(i);
    Tensors gradients = std::move(own.output_gradients);
    for (std::size_t nr = own.segments.size(); nr-- > 0;) {
      run_again_up_to(i, nr);
      observed(i, InstructionKind::Backward, bounds(own)[nr], [&] {
        Segment& segment = own.segments[nr];
        full_backward(segment.outputs, gradients);
        gradients = gradients_of(segment.inputs);
        segment = Segment();
      });
    }
    return gradients;
  });
  held.drop_activations();
}

void Stage::input_gradient(const Instruction& i) {
  Buffers& held = buffers(i);
  const WeightsOfForward weights(optimizer_->parameters(), held.weights);
  held.input_gradients = perform(i, [this, i] {
    Buffers& own = buffers(i);
    Tensors gradients = std::move(own.output_gradients);
    for (std::size_t nr = own.segments.size(); nr-- > 0;) {
      run_again_up_to(i, nr);
      Segment& segment = own.segments[nr];
      const auto work = [&] {
        gradients = segment.split.input_gradients(segment.outputs, gradients, segment.inputs);
        segment.outputs.clear();
        segment.inputs.clear();
      };
      // Without a way to its input all of a layer's backward is W.
      if (std::any_of(segment.inputs.begin(), segment.inputs.end(), has_gradient))
        observed(i, InstructionKind::InputGradient, bounds(own)[nr], work);
      else
        work();
    }
    return gradients;
  });
  held.inputs.clear();
}

void Stage::weight_gradient(const Instruction& i) {
  Buffers& held = buffers(i);
  const WeightsOfForward weights(optimizer_->parameters(), held.weights);
  with_gradients(i, [this, i] {
    Buffers& own = buffers(i);
    for (std::size_t nr = own.segments.size(); nr-- > 0;)
      observed(i, InstructionKind::WeightGradient, bounds(own)[nr],
               [&] { own.segments[nr].split.weight_gradients(); });
    return Tensors();
  });
  held.drop_activations();
}

Tensors Stage::take_gradients() { return scattered_->take(); }

void Stage::finish_gradients() {
  if (scattered_)
    scattered_->finish();
  else
    gradients_->finish();
  if (setup_.before_step)
    show_gradients();
}

void Stage::show_gradients() const {
  const at::NoGradGuard no_grad;
  StepGradients shown{spec_.rank, spec_.index, pass_.step, pass_.loss_scale, {}};
  for (const Optimizer::State& slice : optimizer_->gradient_slices())
    shown.gradients.push_back(
        {optimizer_->named()[slice.parameter], slice.value, slice.begin, slice.whole});
  setup_.before_step(shown);
}

void Stage::update(const Instruction& i, double learning_rate, const GradientUse& use) {
  const auto step = [&](std::size_t first, std::size_t last) {
    if (spec_.step_every > 0)
      optimizer_->leave_weights(first, last);
    optimizer_->step(first, last, learning_rate, use);
  };
  if (spec_.observer == nullptr)
    return step(0, layer_of_parameter_.size());
  for (int layer = spec_.first; layer < spec_.last; ++layer) {
    const auto [first, last] =
        std::equal_range(layer_of_parameter_.begin(), layer_of_parameter_.end(), layer);
    observed(i, InstructionKind::OptimizerStep, layer, [&, first = first, last = last] {
      step(static_cast<std::size_t>(first - layer_of_parameter_.begin()),
           static_cast<std::size_t>(last - layer_of_parameter_.begin()));
    });
  }
}

Tensors Stage::take_input_gradients(const Instruction& i) {
  Tensors gradients = std::move(buffers(i).input_gradients);
  // The slot's next microbatch may come before they have been read.
  return captures_ ? copies_of(std::move(gradients)) : gradients;
}

}  // namespace pipewright::exec
