#include "pipewright/engine/pipeline_stage.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/exec/rank/reductions.hpp"
#include "pipewright/exec/rank/step_result.hpp"
#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/training/without_memory.hpp"
#include "pipewright/plan/error.hpp"
#include "setup_of.hpp"

namespace pipewright::engine {

using plan::InstructionKind;

/// The keyword arguments of a step's microbatches, for the layers of any stage.
class KeywordsOfStep final : public exec::Dataset {
 public:
  exec::NamedTensors keywords(int /*step*/, int microbatch) const override {
    const auto found = of_microbatch.find(microbatch);
    return found == of_microbatch.end() ? exec::NamedTensors() : found->second;
  }
  std::map<int, exec::NamedTensors> of_microbatch;
};

/// The operations that were already done on a microbatch.
struct MicrobatchMarks {
  bool inputs = false, targets = false, forward = false, outputs_taken = false;
  bool output_gradients = false, input_gradient = false, gradients_taken = false, done = false;
};

namespace {

void check_stage(const PipelineModule& module, int index, const PipelineStageOptions& options) {
  if (index < 0 || index >= module.stage_count())
    throw plan::InputError(fmt::format("stage {} requested, but the module has {} stages", index,
                                       module.stage_count()));
  if (module.replicas() > 1 || module.shards() > 1)
    throw plan::InputError(
        "a PipelineStage supports neither data nor tensor parallelism: leave the axes data and "
        "tensor out of the topology");
  if (!module.options().loss)
    throw plan::InputError("the model has no loss function, so its stages cannot be trained");
  if (options.microbatches < 1)
    throw plan::InputError(
        fmt::format("microbatches is {}, but must be at least 1", options.microbatches));
  if (options.gradient_groups < 0 ||
      (options.gradient_groups > 0 && options.microbatches % options.gradient_groups != 0))
    throw plan::InputError(fmt::format("{} gradient groups do not divide {} microbatches",
                                       options.gradient_groups, options.microbatches));
  if (!options.ranks.empty() && std::ssize(options.ranks) != module.stage_count())
    throw plan::InputError(fmt::format("ranks says where {} stages are, but the module has {}",
                                       options.ranks.size(), module.stage_count()));
}

exec::TrainingSetup setup_of_stage(const PipelineModule& module,
                                   const PipelineStageOptions& options) {
  exec::TrainingSetup setup = setup_of(module, options);
  setup.tensor_groups = 1;
  return setup;
}

exec::StageSpec spec_by_itself(const PipelineModule& module, int index,
                               const PipelineStageOptions& options) {
  const StageDescription described = module.stages()[static_cast<std::size_t>(index)];
  const int groups = std::max(1, options.gradient_groups);
  exec::StageSpec spec{.index = index,
                       .first = described.first_layer,
                       .last = described.end_layer,
                       .groups_of_pipeline = groups,
                       .recompute_layers = module.options().checkpoint_interval,
                       .device = options.device.device,
                       .place = {.groups = 1},
                       .dynamic_shapes = options.dynamic_shapes};
  // The loop may split any backward.
  for (int m = 0; m < options.microbatches; ++m) {
    spec.microbatches[m * groups / options.microbatches].push_back(m);
    spec.backwards[m] = {.recomputed = spec.recompute_layers > 0, .split = true};
  }
  return spec;
}

exec::Tensors without_numbers(const exec::Tensors& tensors, at::ScalarType floats) {
  exec::Tensors like;
  for (const at::Tensor& tensor : tensors)
    like.push_back(
        tensor.defined()
            ? at::empty(tensor.sizes(),
                        tensor.options()
                            .dtype(tensor.is_floating_point() ? floats : tensor.scalar_type())
                            .device(at::kMeta))
            : tensor);
  return like;
}

}  // namespace

/// Meta tensors of a stage's inputs and outputs.
struct Crossing {
  exec::Tensors inputs, outputs;
};

namespace {

/// Propagates an example of the model's inputs through all layers up to the stage's last one.
Crossing crossing_of(const exec::TrainingSetup& setup, const exec::StageSpec& spec,
                     const exec::Tensors& example) {
  Crossing crossing;
  exec::Tensors values = without_numbers(example, setup.precision);
  for (int layer = 0; layer < spec.last; ++layer) {
    if (layer == spec.first)
      crossing.inputs = values;
    const exec::LayerSpec& own = setup.layers[static_cast<std::size_t>(layer)];
    const auto made =
        exec::outputs_without_memory(own, *build_without_memory(setup, layer), values);
    if (!made)
      throw plan::InputError(fmt::format(
          "layer {}: the shape of its output for the example is unknown before it runs: set inputs "
          "and outputs of each stage instead of the example, or leave all three out",
          own.name));
    values = *made;
  }
  crossing.outputs = std::move(values);
  return crossing;
}

Crossing crossing_of(const exec::TrainingSetup& setup, const exec::StageSpec& spec,
                     const PipelineStageOptions& options) {
  if (!options.example.empty())
    return crossing_of(setup, spec, options.example);
  return {without_numbers(options.inputs, setup.precision),
          without_numbers(options.outputs, setup.precision)};
}

/// Returns, for each stage, the other stages that share a weight with it.
std::map<int, std::set<int>> tied_to(const PipelineModule& module) {
  std::map<int, std::set<int>> tied;
  for (const auto& [key, stages] : exec::stages_of_keys(module.layers(), module.boundaries()))
    for (const int stage : stages)
      for (const int other : stages)
        if (other != stage)
          tied[stage].insert(other);
  return tied;
}

}  // namespace

struct PipelineStage::State {
  State(const PipelineModule& module, int own, PipelineStageOptions o)
      : index(own),
        count(module.stage_count()),
        options(std::move(o)),
        setup(setup_of_stage(module, options)),
        tied(tied_to(module)),
        stream(exec::compute_stream(options.device)),
        scaler(options.loss_scaling) {
    if (options.ranks.empty())
      for (int s = 0; s < count; ++s)
        options.ranks.push_back(s);
    const exec::OnStream on_stream(stream);
    exec::StageSpec spec = spec_by_itself(module, own, options);
    crossing = crossing_of(setup, spec, options);
    stage.emplace(std::move(spec), setup);
    stage->expect_shapes(is_first() ? exec::Tensors() : crossing.inputs,
                         is_last() ? exec::Tensors() : crossing.outputs);
  }

  bool is_first() const { return index == 0; }
  bool is_last() const { return index == count - 1; }
  int rank() const { return options.ranks[static_cast<std::size_t>(index)]; }
  plan::Instruction at(InstructionKind kind, int microbatch) const {
    return {kind, index, microbatch, microbatch};
  }

  /// Returns all transfers of all stages of this rank, each once.
  std::vector<exec::Transfer> transfers_of_rank() const {
    std::vector<exec::Transfer> all;
    const auto add = [&](InstructionKind kind, int own, int microbatch) {
      const plan::Instruction i{kind, own, microbatch, microbatch};
      const int peer = plan::peer_stage(i);
      if (peer < 0 || peer >= count || rank_of(peer) == rank())
        return;
      all.push_back(plan::is_send(kind) ? exec::Transfer{i, rank(), rank_of(peer)}
                                        : exec::Transfer{i, rank_of(peer), rank()});
    };
    for (int microbatch = 0; microbatch < options.microbatches; ++microbatch)
      for (int own = 0; own < count; ++own)
        if (rank_of(own) == rank())
          for (const InstructionKind kind :
               {InstructionKind::ReceiveActivation, InstructionKind::SendActivation,
                InstructionKind::ReceiveGradient, InstructionKind::SendGradient})
            add(kind, own, microbatch);
    return all;
  }
  int rank_of(int of_stage) const { return options.ranks[static_cast<std::size_t>(of_stage)]; }
  bool is_first_of_rank() const {
    return std::find(options.ranks.begin(), options.ranks.end(), rank()) - options.ranks.begin() ==
           index;
  }

  exec::Transfer transfer(InstructionKind kind, int microbatch, const char* call,
                          const char* instead) {
    const plan::Instruction i = at(kind, microbatch);
    const int peer = rank_of(plan::peer_stage(i));
    if (!options.transport || peer == rank())
      throw plan::InputError(fmt::format(
          "stage {}: {} cannot reach stage {}, {}: pass tensors with {}", index, call,
          plan::peer_stage(i),
          options.transport ? "which is on the same rank" : "because there is no transport",
          instead));
    return plan::is_send(kind) ? exec::Transfer{i, rank(), peer} : exec::Transfer{i, peer, rank()};
  }

  exec::Tensors receive(InstructionKind kind, int microbatch, const char* call,
                        const char* instead) {
    const exec::Transfer from = transfer(kind, microbatch, call, instead);
    const exec::OnStream on_stream(stream);
    options.transport->post(from);
    return options.transport->receive(from);
  }

  MicrobatchMarks& marks(int microbatch, const char* call) {
    if (microbatches.empty())
      throw plan::InputError(fmt::format("stage {}: {} comes after begin", index, call));
    if (microbatch < 0 || microbatch >= options.microbatches)
      throw plan::InputError(fmt::format("stage {}: {} of microbatch {}, but a step has {}", index,
                                         call, microbatch, options.microbatches));
    return microbatches[static_cast<std::size_t>(microbatch)];
  }
  void require(bool holds, int microbatch, const char* call, const char* why) const {
    if (!holds)
      throw plan::InputError(
          fmt::format("stage {}, microbatch {}: {} {}", index, microbatch, call, why));
  }
  /// Marks a call that may be made only once per microbatch.
  void once(bool& mark, int microbatch, const char* call) const {
    require(!mark, microbatch, call, "has been called before");
    mark = true;
  }

  void compute(InstructionKind kind, int microbatch) {
    const exec::OnStream on_stream(stream);
    const at::AutoGradMode with_gradients(true);
    stage->compute(at(kind, microbatch));
  }

  int index, count;
  PipelineStageOptions options;
  exec::TrainingSetup setup;
  std::map<int, std::set<int>> tied;
  exec::Stream stream;
  exec::LossScaler scaler;
  Crossing crossing;
  KeywordsOfStep keywords;
  std::optional<exec::Stage> stage;
  int step = 0;
  std::vector<MicrobatchMarks> microbatches;  // of the current step
};

PipelineStage::PipelineStage(const PipelineModule& module, int index,
                             PipelineStageOptions options) {
  check_stage(module, index, options);
  state_ = std::make_unique<State>(module, index, std::move(options));
}

PipelineStage::PipelineStage(PipelineStage&&) noexcept = default;
PipelineStage::~PipelineStage() = default;

int PipelineStage::index() const { return state_->index; }
int PipelineStage::count() const { return state_->count; }
const exec::Tensors& PipelineStage::input_shapes() const { return state_->crossing.inputs; }
const exec::Tensors& PipelineStage::output_shapes() const { return state_->crossing.outputs; }
const exec::TrainingSetup& PipelineStage::setup() const { return state_->setup; }

std::vector<at::Tensor> PipelineStage::parameters() const {
  return parameters_of(state_->stage->layers().all());
}

void PipelineStage::begin(int step) {
  at::set_num_threads(1);  // more threads would change the order of summation
  State& s = *state_;
  s.step = step;
  s.microbatches.assign(static_cast<std::size_t>(s.options.microbatches), {});
  const exec::OnStream on_stream(s.stream);
  s.stage->begin(
      {.step = step, .microbatches = s.options.microbatches, .loss_scale = s.scaler.scale()},
      /*slots=*/s.options.microbatches);
  if (s.options.transport && s.is_first_of_rank())
    s.options.transport->expect(
        s.rank(), s.transfers_of_rank(),
        s.options.dynamic_shapes ? exec::Shapes::Varying : exec::Shapes::Fixed);
}

void PipelineStage::load(int microbatch, const exec::Batch& batch, double weight) {
  MicrobatchMarks& marks = state_->marks(microbatch, "load");
  if (is_first())
    state_->once(marks.inputs, microbatch, "load");
  if (is_last())
    state_->once(marks.targets, microbatch, "load");
  state_->keywords.of_microbatch[microbatch] = batch.keywords;
  const exec::OnStream on_stream(state_->stream);
  const at::AutoGradMode with_gradients(true);
  if (is_first() || is_last())
    state_->stage->load(state_->at(InstructionKind::Load, microbatch),
                        {batch.inputs, batch.targets, weight});
}

void PipelineStage::set_inputs(int microbatch, exec::Tensors inputs) {
  MicrobatchMarks& marks = state_->marks(microbatch, "set_inputs");
  state_->require(!is_first(), microbatch, "set_inputs", "is not for the first stage: call load");
  state_->once(marks.inputs, microbatch, "set_inputs");
  state_->stage->receive_inputs(state_->at(InstructionKind::ReceiveActivation, microbatch),
                                std::move(inputs));
}

void PipelineStage::receive_inputs(int microbatch) {
  state_->marks(microbatch, "receive_inputs");
  if (!is_first())
    set_inputs(microbatch, state_->receive(InstructionKind::ReceiveActivation, microbatch,
                                           "receive_inputs", "set_inputs"));
}

void PipelineStage::forward(int microbatch) {
  MicrobatchMarks& marks = state_->marks(microbatch, "forward");
  state_->require(marks.inputs, microbatch, "forward",
                  is_first() ? "comes after load" : "comes after receive_inputs or set_inputs");
  state_->require(marks.targets || !is_last(), microbatch, "forward",
                  "comes after load, which gives the last stage its targets");
  state_->once(marks.forward, microbatch, "forward");
  state_->compute(InstructionKind::Forward, microbatch);
  marks.output_gradients = is_last();
}

exec::Tensors PipelineStage::take_outputs(int microbatch) {
  MicrobatchMarks& marks = state_->marks(microbatch, "take_outputs");
  state_->require(!is_last(), microbatch, "take_outputs",
                  "is not for the last stage, whose outputs go into the loss");
  state_->require(marks.forward, microbatch, "take_outputs", "comes after forward");
  state_->once(marks.outputs_taken, microbatch, "take_outputs");
  return state_->stage->outputs_for_next(state_->at(InstructionKind::SendActivation, microbatch));
}

void PipelineStage::send_outputs(int microbatch) {
  state_->marks(microbatch, "send_outputs");
  if (is_last())
    return;
  const exec::Transfer to =
      state_->transfer(InstructionKind::SendActivation, microbatch, "send_outputs", "take_outputs");
  const exec::OnStream on_stream(state_->stream);
  state_->options.transport->send(to, take_outputs(microbatch));
}

void PipelineStage::set_output_gradients(int microbatch, exec::Tensors gradients) {
  MicrobatchMarks& marks = state_->marks(microbatch, "set_output_gradients");
  state_->require(!is_last(), microbatch, "set_output_gradients",
                  "is not for the last stage, whose gradients are those of the loss");
  state_->require(marks.forward, microbatch, "set_output_gradients", "comes after forward");
  state_->once(marks.output_gradients, microbatch, "set_output_gradients");
  state_->stage->receive_gradients(state_->at(InstructionKind::ReceiveGradient, microbatch),
                                   std::move(gradients));
}

void PipelineStage::receive_gradients(int microbatch) {
  state_->marks(microbatch, "receive_gradients");
  if (!is_last())
    set_output_gradients(microbatch, state_->receive(InstructionKind::ReceiveGradient, microbatch,
                                                     "receive_gradients", "set_output_gradients"));
}

void PipelineStage::backward(int microbatch) {
  MicrobatchMarks& marks = state_->marks(microbatch, "backward");
  state_->require(
      marks.output_gradients, microbatch, "backward",
      is_last() ? "comes after forward" : "comes after receive_gradients or set_output_gradients");
  state_->once(marks.input_gradient, microbatch, "backward");
  state_->compute(InstructionKind::Backward, microbatch);
  marks.done = true;
}

void PipelineStage::input_gradient(int microbatch) {
  MicrobatchMarks& marks = state_->marks(microbatch, "input_gradient");
  state_->require(
      marks.output_gradients, microbatch, "input_gradient",
      is_last() ? "comes after forward" : "comes after receive_gradients or set_output_gradients");
  state_->once(marks.input_gradient, microbatch, "input_gradient");
  state_->compute(InstructionKind::InputGradient, microbatch);
}

void PipelineStage::weight_gradient(int microbatch) {
  MicrobatchMarks& marks = state_->marks(microbatch, "weight_gradient");
  state_->require(marks.input_gradient, microbatch, "weight_gradient",
                  "comes after input_gradient");
  state_->once(marks.done, microbatch, "weight_gradient");
  state_->compute(InstructionKind::WeightGradient, microbatch);
}

exec::Tensors PipelineStage::take_input_gradients(int microbatch) {
  MicrobatchMarks& marks = state_->marks(microbatch, "take_input_gradients");
  state_->require(!is_first(), microbatch, "take_input_gradients",
                  "is not for the first stage, whose inputs have none");
  state_->require(marks.input_gradient, microbatch, "take_input_gradients",
                  "comes after backward or input_gradient");
  state_->once(marks.gradients_taken, microbatch, "take_input_gradients");
  return state_->stage->take_input_gradients(state_->at(InstructionKind::SendGradient, microbatch));
}

void PipelineStage::send_gradients(int microbatch) {
  state_->marks(microbatch, "send_gradients");
  if (is_first())
    return;
  const exec::Transfer to = state_->transfer(InstructionKind::SendGradient, microbatch,
                                             "send_gradients", "take_input_gradients");
  const exec::OnStream on_stream(state_->stream);
  state_->options.transport->send(to, take_input_gradients(microbatch));
}

exec::StepResult PipelineStage::update() { return update_together({this}); }

/// The end of a step for the stages of a rank, with the ranks that step together.
struct StepEnd {
  explicit StepEnd(const std::vector<PipelineStage*>& stages) {
    for (PipelineStage* const stage : stages)
      states.push_back(&*stage->state_);
    PipelineStage::State& first = *states.front();
    everybody.self = first.rank();
    everybody.transport = first.options.transport.get();
    everybody.ranks = {everybody.self};
    if (everybody.transport != nullptr) {
      const std::set<int> ranks(first.options.ranks.begin(), first.options.ranks.end());
      everybody.ranks.assign(ranks.begin(), ranks.end());
    }
  }

  bool is_here(int stage) const {
    return std::any_of(states.begin(), states.end(),
                       [&](const auto* state) { return state->index == stage; });
  }
  const exec::TrainingSetup& setup() const { return states.front()->setup; }

  void check() const;
  void sum_tied() const;
  exec::GradientUse finish_gradients(exec::StepResult& result) const;
  std::vector<exec::MicrobatchLoss> losses() const;
  exec::StepResult run() const;

  std::vector<PipelineStage::State*> states;
  exec::Members everybody;
};

void StepEnd::check() const {
  for (const PipelineStage::State* const state : states) {
    for (std::size_t m = 0; m < state->microbatches.size(); ++m)
      state->require(state->microbatches[m].done, static_cast<int>(m), "update",
                     "comes after its backward, whole or in both halves");
    if (state->microbatches.empty())
      throw plan::InputError(fmt::format("stage {}: update comes after begin", state->index));
    for (int other = 0; other < state->count; ++other) {
      if (is_here(other))
        continue;
      if (everybody.transport != nullptr && state->rank_of(other) == state->rank())
        throw plan::InputError(
            fmt::format("stages {} and {} are both on rank {}: call update_together with all of "
                        "its stages",
                        state->index, other, state->rank()));
      const auto tied = state->tied.find(state->index);
      const bool shares_weight = tied != state->tied.end() && tied->second.contains(other);
      if (everybody.transport == nullptr && (shares_weight || exec::needs_norm(state->setup)))
        throw plan::InputError(fmt::format(
            "stage {} needs the gradients of stage {} {}: give them a transport, or call "
            "update_together with both",
            state->index, other,
            shares_weight ? "for a weight that they share" : "to scale or clip its own"));
    }
  }
}

/// Sums the gradients of tied weights. Stages that share a weight with another rank's stage reduce
/// them together with that rank; the others sum locally.
void StepEnd::sum_tied() const {
  std::set<int> meeting;
  const PipelineStage::State& first = *states.front();
  for (const auto& [stage, others] : first.tied)
    meeting.insert(first.rank_of(stage));
  std::vector<exec::Stage*> stages;
  for (PipelineStage::State* const state : states)
    stages.push_back(&*state->stage);
  exec::Members members{{everybody.self}, everybody.self, everybody.transport};
  reduce_tied(stages, exec::TiesOf::OneStage, setup(), members);
  if (everybody.transport != nullptr && meeting.contains(everybody.self))
    members.ranks.assign(meeting.begin(), meeting.end());
  reduce_tied(stages, exec::TiesOf::SeveralStages, setup(), members);
}

exec::GradientUse StepEnd::finish_gradients(exec::StepResult& result) const {
  sum_tied();
  exec::GradientNorm own, norm;
  for (PipelineStage::State* const state : states) {
    state->stage->finish_gradients();
    if (exec::needs_norm(setup()))
      own.add(*state->stage, setup());
  }
  if (!exec::needs_norm(setup()))
    return {};
  for (const exec::Tensors& theirs : everybody.all_gather(own.to_tensors()))
    norm.add(theirs);
  return use_and_tell(setup(), states.front()->scaler.scale(), norm, result);
}

/// Returns the last stage's losses, on all ranks.
std::vector<exec::MicrobatchLoss> StepEnd::losses() const {
  std::vector<exec::MicrobatchLoss> own(
      static_cast<std::size_t>(states.front()->options.microbatches));
  for (const PipelineStage::State* const state : states)
    if (state->is_last())
      own = state->stage->losses();
  return shared_losses(everybody, own);
}

exec::StepResult StepEnd::run() const {
  check();
  const exec::OnStream on_stream(states.front()->stream);
  exec::StepResult result;
  for (PipelineStage::State* const state : states)
    state->stage->end();
  tell_losses(losses(), result);
  const exec::GradientUse use = finish_gradients(result);
  for (PipelineStage::State* const state : states) {
    state->stage->update({InstructionKind::OptimizerStep},
                         exec::learning_rate_at(state->setup.optimizer, state->step), use);
    state->scaler.update(!result.skipped);
    state->microbatches.clear();
    state->stream.finish();
  }
  return result;
}

exec::StepResult update_together(const std::vector<PipelineStage*>& stages) {
  if (stages.empty())
    throw plan::InputError("update_together is given no stages");
  return StepEnd(stages).run();
}

}  // namespace pipewright::engine
