#include "pipewright/profiler/rehearsal.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::profiler {

using plan::Instruction;
using plan::InstructionKind;

void LayerSamples::append(const LayerSamples& other) {
  for (const auto kind : sample_kinds)
    (this->*kind).insert((this->*kind).end(), (other.*kind).begin(), (other.*kind).end());
}

plan::LayerTimes times_of(const LayerSamples& samples, const plan::LayerTimes& planned) {
  const auto typical = [](const std::vector<double>& seconds) {
    return plan::Seconds{plan::typical_mean(seconds)};
  };
  plan::LayerTimes times;
  times.forward = typical(samples.forward);
  times.optimizer_step = typical(samples.optimizer_step);
  times.input_gradient = typical(samples.input_gradient);
  times.weight_gradient = typical(samples.weight_gradient);
  const plan::Seconds whole = typical(samples.backward);
  if (samples.backward.empty())
    return times;
  if (samples.input_gradient.empty() && samples.weight_gradient.empty()) {
    // The same shares as planned.
    const auto both = planned.input_gradient + planned.weight_gradient - planned.splitting;
    const double factor = both.value > 0 ? whole / both : 0;
    times.input_gradient = both.value > 0 ? planned.input_gradient * factor : whole;
    times.weight_gradient = planned.weight_gradient * factor;
    times.splitting = planned.splitting * factor;
    return times;
  }
  times.splitting = std::max(plan::Seconds{}, times.input_gradient + times.weight_gradient - whole);
  times.weight_gradient = whole + times.splitting - times.input_gradient;
  if (times.weight_gradient < plan::Seconds{}) {  // all of it leads to the input, but for noise
    times.input_gradient = whole;
    times.weight_gradient = times.splitting = {};
  }
  return times;
}

std::map<int, StagePart> stage_parts(const LayerBench& bench, const std::vector<int>& boundaries) {
  std::map<int, StagePart> parts;
  std::vector<at::Tensor> inputs, outputs;
  at::Tensor value = bench.load();
  for (std::size_t l = 0; l <= bench.loss(); ++l) {
    inputs.push_back(value.detach());
    if (l > 0)
      inputs.back().requires_grad_();
    outputs.push_back(bench.forward(l, inputs.back()));
    value = outputs.back();
  }
  at::Tensor gradient;  // of the loss: LibTorch takes 1
  for (std::size_t l = outputs.size(); l-- > 0;) {
    if (outputs[l].requires_grad())
      torch::autograd::backward({outputs[l]}, {gradient});
    gradient = inputs[l].grad();
    for (std::size_t stage = 1; stage + 1 < boundaries.size(); ++stage)
      if (boundaries[stage] == static_cast<int>(l)) {
        parts[static_cast<int>(stage)].input = inputs[l].detach();
        parts[static_cast<int>(stage) - 1].gradient = gradient;
      }
  }
  for (std::size_t stage = 0; stage + 1 < boundaries.size(); ++stage) {
    StagePart& part = parts[static_cast<int>(stage)];
    part.first = boundaries[stage];
    part.last = boundaries[stage + 1];
  }
  return parts;
}

Rehearsal::Rehearsal(const LayerBench& bench, std::map<int, StagePart> stages,
                     std::vector<Instruction> script, const RehearsalOptions& options)
    : bench_(bench), stages_(std::move(stages)), script_(std::move(script)), options_(options) {
  for (const Instruction& i : script_)
    if (i.kind == InstructionKind::Recompute)
      run_again_.emplace(i.stage, i.microbatch);
}

void Rehearsal::play(std::vector<LayerSamples>* samples) {
  samples_ = samples;
  if (samples != nullptr)
    samples->resize(bench_.loss() + 1);
  seconds_.clear();
  target_seconds_.clear();
  for (const Instruction& i : script_)
    seconds_.push_back(perform(i));
  loaded_.clear();
  under_way_.clear();
}

plan::Seconds Rehearsal::play_through(WorkLog* log) {
  log_ = log;
  waits_for_device_ = false;
  const auto begin = std::chrono::steady_clock::now();
  play(nullptr);
  bench_.finish();
  const auto end = std::chrono::steady_clock::now();
  waits_for_device_ = true;
  log_ = nullptr;
  return {std::chrono::duration<double>(end - begin).count()};
}

/// Seconds that `work` takes, on a GPU until it has been computed. `layer`: -1 for what is of none.
template <class Work>
double Rehearsal::timed(const Instruction& i, int layer, const Work& work) const {
  if (log_ != nullptr)
    log_->begin(0, i, layer);
  const auto begin = std::chrono::steady_clock::now();
  work();
  if (log_ != nullptr)
    log_->end();
  if (waits_for_device_)
    bench_.finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Rehearsal::note(std::size_t layer, std::vector<double> LayerSamples::*kind, double seconds) {
  if (samples_ != nullptr)
    ((*samples_)[layer].*kind).push_back(seconds);
}

double Rehearsal::perform(const Instruction& i) {
  switch (i.kind) {
    case InstructionKind::Load:
      return load(i);
    case InstructionKind::Forward:
      return forward(i);
    case InstructionKind::Backward:
      return backward(i);
    case InstructionKind::InputGradient:
      return input_gradient(i);
    case InstructionKind::WeightGradient:
      return weight_gradient(i);
    case InstructionKind::OptimizerStep:
      return optimizer_step(i);
    case InstructionKind::Recompute:
      return recompute(i);
    case InstructionKind::SendActivation:
    case InstructionKind::ReceiveActivation:
    case InstructionKind::SendGradient:
    case InstructionKind::ReceiveGradient:
    case InstructionKind::ReduceTied:
    case InstructionKind::ReduceGradients:
    case InstructionKind::ScatterGradients:
    case InstructionKind::NormGradients:
    case InstructionKind::GatherParameters:
    case InstructionKind::ShareLoss:
    case InstructionKind::Unshard:
    case InstructionKind::Reshard:
      break;
  }
  return 0;
}

bool Rehearsal::has_loss(const StagePart& part) { return !part.gradient.defined(); }

std::size_t Rehearsal::layer_end(const StagePart& part) const {
  return static_cast<std::size_t>(part.last) + (has_loss(part) ? 1 : 0);
}

/// The first stage's input, the last one's targets. The loss has those of its bench.
double Rehearsal::load(const Instruction& i) {
  const StagePart& own = part(i);
  double sum = 0;
  if (!own.input.defined())
    sum += timed(i, -1, [&] { loaded_[i.microbatch] = bench_.load(); });
  if (!has_loss(own))
    return sum;
  const double seconds = timed(i, -1, [&] { bench_.load_target(); });
  target_seconds_.push_back(seconds);
  return sum + seconds;
}

bool Rehearsal::runs_again(const Instruction& i) const {
  return run_again_.contains({i.stage, i.microbatch});
}

/// The first of those that run again at a time with this one; the loss does so with the last layer.
std::size_t Rehearsal::rerun_begin(const StagePart& part, std::size_t segment) const {
  if (options_.recompute_layers == 0)
    return 0;
  const auto last_layer = static_cast<std::size_t>(part.last - part.first) - 1;
  const auto layers = static_cast<std::size_t>(options_.recompute_layers);
  return std::min(segment, last_layer) / layers * layers;
}

/// Some segments of a microbatch, from the input of the first one. Without a graph nothing stays
/// but what will run again begins with.
double Rehearsal::run_layers(const Instruction& i, std::size_t from, std::size_t to,
                             bool with_graph) {
  const StagePart& own = part(i);
  Microbatch& segments = under_way_[{i.stage, i.microbatch}];
  const at::AutoGradMode graph(with_graph);
  at::Tensor value = segments[from].input;
  double sum = 0;
  for (std::size_t at = from; at < to; ++at) {
    const std::size_t l = static_cast<std::size_t>(own.first) + at;
    at::Tensor input = value.detach();
    if (l > 0)
      input.requires_grad_();
    const double seconds = timed(i, static_cast<int>(l), [&] {
      value = bench_.forward(l, input, options_.selective_recompute);
    });
    note(l, &LayerSamples::forward, seconds);
    sum += seconds;
    if (with_graph)
      segments[at].output = value;
    if (with_graph || rerun_begin(own, at) == at)
      segments[at].input = std::move(input);
  }
  return sum;
}

double Rehearsal::forward(const Instruction& i) {
  const StagePart& own = part(i);
  Microbatch& segments = under_way_[{i.stage, i.microbatch}];
  segments.resize(layer_end(own) - static_cast<std::size_t>(own.first));
  segments.front().input = own.input.defined() ? own.input : loaded_[i.microbatch];
  return run_layers(i, 0, segments.size(), !runs_again(i));
}

/// Of what runs again at a time the last part; the backward goes on with the others.
double Rehearsal::recompute(const Instruction& i) {
  return rerun_up_to(i, under_way_[{i.stage, i.microbatch}].size() - 1);
}

/// Those that run again at a time, of which this one is the last; nothing where it has its graph.
double Rehearsal::rerun_up_to(const Instruction& i, std::size_t segment) {
  if (under_way_[{i.stage, i.microbatch}][segment].output.defined())
    return 0;
  return run_layers(i, rerun_begin(part(i), segment), segment + 1, /*with_graph=*/true);
}

double Rehearsal::backward(const Instruction& i) {
  const StagePart& own = part(i);
  Microbatch& segments = under_way_[{i.stage, i.microbatch}];
  at::Tensor gradient = own.gradient;
  double sum = 0;
  for (std::size_t at = segments.size(); at-- > 0;) {
    Segment& segment = segments[at];
    sum += rerun_up_to(i, at);
    double seconds = 0;
    if (segment.output.requires_grad())
      seconds = timed(i, own.first + static_cast<int>(at), [&] {
        torch::autograd::backward({segment.output}, {gradient});
        segment.output = at::Tensor();
      });
    note(static_cast<std::size_t>(own.first) + at, &LayerSamples::backward, seconds);
    sum += seconds;
    gradient = segment.input.grad();
    segment = {};
  }
  under_way_.erase({i.stage, i.microbatch});
  return sum;
}

/// The first layer of the model has no gradient of its input: all of its backward is for its
/// weights.
double Rehearsal::input_gradient(const Instruction& i) {
  const StagePart& own = part(i);
  Microbatch& segments = under_way_[{i.stage, i.microbatch}];
  at::Tensor gradient =
      own.gradient.defined() ? own.gradient : at::ones_like(segments.back().output);
  double sum = 0;
  for (std::size_t at = segments.size(); at-- > 0;) {
    Segment& segment = segments[at];
    sum += rerun_up_to(i, at);
    double seconds = 0;
    if (!segment.input.requires_grad() && segment.output.requires_grad()) {
      segment.gradient = gradient;
    } else {
      if (segment.output.requires_grad())
        seconds = timed(i, own.first + static_cast<int>(at), [&] {
          gradient = segment.split.emplace()
                         .input_gradients({segment.output}, {gradient}, {segment.input})
                         .front();
        });
      segment.output = at::Tensor();
    }
    note(static_cast<std::size_t>(own.first) + at, &LayerSamples::input_gradient, seconds);
    sum += seconds;
    segment.input = at::Tensor();
  }
  return sum;
}

double Rehearsal::weight_gradient(const Instruction& i) {
  const StagePart& own = part(i);
  Microbatch& segments = under_way_[{i.stage, i.microbatch}];
  double sum = 0;
  for (std::size_t at = segments.size(); at-- > 0;) {
    Segment& segment = segments[at];
    if (!segment.split && !segment.output.defined())
      continue;
    const double seconds = timed(i, own.first + static_cast<int>(at), [&] {
      if (segment.split)
        segment.split->weight_gradients();
      else
        torch::autograd::backward({segment.output}, {segment.gradient});
    });
    note(static_cast<std::size_t>(own.first) + at, &LayerSamples::weight_gradient, seconds);
    sum += seconds;
    segment = {};
  }
  under_way_.erase({i.stage, i.microbatch});
  return sum;
}

double Rehearsal::optimizer_step(const Instruction& i) {
  const StagePart& own = part(i);
  double sum = 0;
  for (auto l = static_cast<std::size_t>(own.first); l < layer_end(own); ++l) {
    if (l == bench_.loss())
      continue;
    const double seconds =
        timed(i, static_cast<int>(l), [&] { bench_.optimizer_step(l, options_.asynchronous); });
    note(l, &LayerSamples::optimizer_step, seconds);
    sum += seconds;
  }
  return sum;
}

}  // namespace pipewright::profiler
