#include "pipewright/profiler/sections/rehearsal.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "pipewright/exec/stage/layer_observer.hpp"

namespace pipewright::profiler {

using plan::Instruction;
using plan::InstructionKind;
using SteadyClock = std::chrono::steady_clock;

namespace {

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

/// Returns the same values as leaves of a microbatch's own graph.
exec::Tensors own_leaves(const exec::Tensors& values) {
  exec::Tensors leaves;
  for (const at::Tensor& value : values)
    leaves.push_back(value.defined() ? value.detach().requires_grad_(value.requires_grad())
                                     : value);
  return leaves;
}

}  // namespace

namespace {

/// Returns one layer of the training as a stage, with the loss if it is the last one.
std::unique_ptr<exec::Stage> layer_alone(const LayerBench& bench, int layer,
                                         const exec::Tensors& inputs) {
  exec::StageSpec spec;
  spec.index = spec.first = layer;
  spec.last = layer + 1;
  spec.microbatches = {{0, {0}}};
  auto stage = bench.build(std::move(spec));
  stage->begin({.data = bench.setup().data}, /*slots=*/1);
  if (layer > 0)
    stage->receive_inputs({InstructionKind::ReceiveActivation, layer, 0, 0}, own_leaves(inputs));
  stage->load({InstructionKind::Load, layer, 0, 0});
  stage->compute({InstructionKind::Forward, layer, 0, 0});
  return stage;
}

}  // namespace

std::vector<StageBoundaries> borders_of(const LayerBench& bench, const plan::Partition& partition) {
  std::vector<StageBoundaries> borders(static_cast<std::size_t>(plan::stage_count(partition)));
  if (borders.size() == 1)
    return borders;
  std::vector<exec::Tensors> inputs(1);  // by layer
  for (int layer = 0; layer + 1 < bench.loss(); ++layer)
    inputs.push_back(layer_alone(bench, layer, inputs.back())
                         ->outputs_for_next({InstructionKind::SendActivation, layer, 0, 0}));
  exec::Tensors gradients;
  for (std::size_t s = borders.size(); s-- > 1;) {
    const int first = partition.boundaries[s];
    for (int layer = partition.boundaries[s + 1]; layer-- > first;) {
      const auto stage = layer_alone(bench, layer, inputs[static_cast<std::size_t>(layer)]);
      if (layer + 1 < bench.loss())
        stage->receive_gradients({InstructionKind::ReceiveGradient, layer, 0, 0}, gradients);
      stage->compute({InstructionKind::Backward, layer, 0, 0});
      gradients = stage->take_input_gradients({InstructionKind::SendGradient, layer, 0, 0});
    }
    borders[s].inputs = inputs[static_cast<std::size_t>(first)];
    borders[s - 1].gradients = gradients;
  }
  return borders;
}

namespace {

/// Returns the seconds that a bench's rank has spent in tensor-parallel communication so far.
double among_shards(const LayerBench& bench) {
  return bench.shards() == nullptr ? 0 : bench.shards()->passed_on().seconds.value;
}

int meetings_of_shards(const LayerBench& bench) {
  return bench.shards() == nullptr ? 0 : bench.shards()->passed_on().times;
}

}  // namespace

/// Measures how long each layer's part takes, without tensor-parallel communication; on a GPU
/// including the device's work.
class Rehearsal::LayerClock final : public exec::LayerObserver {
 public:
  explicit LayerClock(const LayerBench& bench) : bench_(bench) {}

  void begin(const Instruction& part, int layer) override {
    if (log != nullptr)
      log->begin(0, part, part.kind == InstructionKind::Load ? -1 : layer);
    among_shards_ = among_shards(bench_);
    begin_ = SteadyClock::now();
  }

  void end(const Instruction& part, int layer) override {
    if (log != nullptr)
      log->end();
    if (waits_for_device)
      bench_.finish();
    const double seconds = seconds_since(begin_) - (among_shards(bench_) - among_shards_);
    if (part.kind == InstructionKind::Load && layer == bench_.loss())
      target_seconds.push_back(seconds);
    if (const auto kind = samples_of(part.kind); samples != nullptr && kind != nullptr)
      ((*samples)[static_cast<std::size_t>(layer)].*kind).push_back(seconds);
  }

  std::vector<LayerSamples>* samples = nullptr;
  WorkLog* log = nullptr;
  bool waits_for_device = true;  // after each layer
  std::vector<double> target_seconds;

 private:
  const LayerBench& bench_;
  SteadyClock::time_point begin_;
  double among_shards_ = 0;  // at the start of the part
};

Rehearsal::Rehearsal(const LayerBench& bench, const RankProgram& played,
                     std::vector<StageBoundaries> borders)
    : bench_(bench),
      borders_(std::move(borders)),
      script_(played.program.ranks[static_cast<std::size_t>(played.rank.rank)]),
      clock_(std::make_unique<LayerClock>(bench)) {
  const int microbatches = played.program.microbatches;
  pass_.data = bench.setup().data;
  pass_.first_microbatch = played.rank.replica * microbatches;
  pass_.microbatches = played.rank.replicas * microbatches;
  for (Instruction& i : script_) {
    if (i.slot < 0)
      i.slot = std::max(0, i.microbatch);
    slots_ = std::max(slots_, i.slot + 1);
  }
  for (exec::StageSpec& spec :
       exec::stage_specs(played.program, played.partition, played.rank, played.gradient_groups)) {
    spec.observer = clock_.get();
    spec.shard.parameters = false;  // there are no ranks to gather them from
    const int index = spec.index;
    stages_[index] = bench.build(std::move(spec));
  }
}

Rehearsal::Rehearsal(Rehearsal&&) noexcept = default;
Rehearsal::~Rehearsal() = default;

const std::vector<double>& Rehearsal::target_seconds() const { return clock_->target_seconds; }

void Rehearsal::play(std::vector<LayerSamples>* samples) {
  if (samples != nullptr)
    samples->resize(static_cast<std::size_t>(bench_.loss()) + 1);
  clock_->samples = samples;
  run_script();
  clock_->samples = nullptr;
}

plan::Seconds Rehearsal::play_through(WorkLog* log) {
  clock_->log = log;
  clock_->waits_for_device = false;
  const auto begin = SteadyClock::now();
  run_script();
  bench_.finish();
  const double seconds = seconds_since(begin);
  clock_->waits_for_device = true;
  clock_->log = nullptr;
  return {seconds};
}

void Rehearsal::run_script() {
  seconds_.clear();
  shard_seconds_.clear();
  std::vector<int> meetings;  // in each instruction
  const bool is_alone = bench_.shards() == nullptr || bench_.shards()->is_alone();
  clock_->target_seconds.clear();
  for (auto& [index, stage] : stages_)
    stage->begin(pass_, slots_);
  for (const Instruction& i : script_) {
    receive(i);
    const double among_before = among_shards(bench_);
    const int meetings_before = meetings_of_shards(bench_);
    const auto begin = SteadyClock::now();
    const bool computes = perform(i);
    const double seconds = seconds_since(begin), among = among_shards(bench_) - among_before;
    seconds_.push_back(computes ? seconds - (is_alone ? among : 0) : 0);
    shard_seconds_.push_back(is_alone ? 0 : among);
    meetings.push_back(is_alone ? 0 : meetings_of_shards(bench_) - meetings_before);
  }
  for (auto& [index, stage] : stages_) {
    stage->finish_gradients();  // of microbatches that no step follows
    stage->end();
  }
  find_late(meetings);
}

/// Computes the waits for late ranks from the number of tensor-parallel collectives in each
/// instruction, `meetings`. Without other ranks, all waits are 0.
void Rehearsal::find_late(const std::vector<int>& meetings) {
  late_seconds_.assign(meetings.size(), 0);
  if (bench_.shards() == nullptr || bench_.shards()->is_alone())
    return;
  const std::vector<double> waits = bench_.shards()->waits();
  auto next = waits.begin();
  for (std::size_t at = 0; at < meetings.size(); next += meetings[at++])
    late_seconds_[at] = std::accumulate(next, next + meetings[at], 0.0);
}

/// Sets the tensors that training would have received by now.
void Rehearsal::receive(const Instruction& i) {
  if (i.kind == InstructionKind::Forward && i.stage > 0)
    stage(i.stage).receive_inputs(
        i, own_leaves(borders_.at(static_cast<std::size_t>(i.stage)).inputs));
  const bool takes_gradients =
      i.kind == InstructionKind::Backward || i.kind == InstructionKind::InputGradient;
  if (takes_gradients && i.stage + 1 < static_cast<int>(borders_.size()))
    stage(i.stage).receive_gradients(i, borders_[static_cast<std::size_t>(i.stage)].gradients);
}

/// Returns true if the instruction computes something.
bool Rehearsal::perform(const Instruction& i) {
  exec::Stage& own = stage(i.stage);
  const plan::InstructionTraits& traits = plan::traits_of(i.kind);
  if (traits.action) {
    own.compute(i);
    if (i.kind == InstructionKind::Forward)
      own.outputs_for_next(i);  // dropped
    if (plan::makes_input_gradient(i.kind))
      own.take_input_gradients(i);
  } else if (i.kind == InstructionKind::Load) {
    own.load(i);
  } else if (i.kind == InstructionKind::ScatterMicrobatch) {
    own.take_gradients();  // dropped instead of summed
  } else if (i.kind == InstructionKind::OptimizerStep) {
    own.finish_gradients();
    own.update(i, bench_.setup().optimizer.learning_rate);
  }
  return traits.work != plan::Work::None;
}

}  // namespace pipewright::profiler
