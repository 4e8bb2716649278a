#include "pipewright/plan/generators/deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "closed_forms.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {
namespace {

using Steps = std::vector<std::vector<Instruction>>;

/// The work of a rank in one step.
struct Work {
  bool forward = true;
  int microbatch = 0;
};

/// One rank of DeepSpeed's TrainSchedule, in which forwards and backwards alternate: the forward of
/// microbatch m on stage s is in step s + 2m, its backward in step 2P - 1 - s + 2m.
class TrainRank {
 public:
  TrainRank(int stage, int stages, int microbatches)
      : stage_(stage),
        stages_(stages),
        microbatches_(microbatches),
        buffers_(std::max(2, std::min(stages - stage, microbatches))) {}

  int buffers() const { return buffers_; }

  Steps steps() const {
    const int count = 2 * (microbatches_ + stages_ - 1);
    Steps steps;
    for (int step = 0; step < count; ++step)
      steps.push_back(instructions(step));
    for (const auto kind : {InstructionKind::ReduceTied, InstructionKind::ReduceGradients,
                            InstructionKind::OptimizerStep})
      steps.back().push_back({kind, stage_});
    return steps;
  }

 private:
  bool is_forward(int step) const { return (step - stage_) % 2 == 0; }

  /// Returns the work in a step, or nothing in the steps in which the pipeline fills and drains.
  std::optional<Work> work(int step) const {
    const bool forward = is_forward(step);
    const int since = forward ? step - stage_ : step - (2 * stages_ - 1 - stage_);
    if (since < 0 || since / 2 >= microbatches_)
      return {};
    return Work{forward, since / 2};
  }

  Instruction of(InstructionKind kind, int microbatch) const {
    return {kind, stage_, microbatch, microbatch % buffers_};
  }

  /// Returns the instructions of a step: it sends the results of the previous step, receives the
  /// inputs of this step, and computes.
  std::vector<Instruction> instructions(int step) const {
    std::vector<Instruction> list;
    const auto now = work(step), before = work(step - 1);
    const bool has_previous = stage_ > 0, has_next = stage_ + 1 < stages_;
    if (is_forward(step)) {
      if (before && has_previous)
        list.push_back(of(InstructionKind::SendGradient, before->microbatch));
      if (now && has_previous)
        list.push_back(of(InstructionKind::ReceiveActivation, now->microbatch));
      if (now && (!has_previous || !has_next))
        list.push_back(of(InstructionKind::Load, now->microbatch));
    } else {
      if (now && has_next)
        list.push_back(of(InstructionKind::ReceiveGradient, now->microbatch));
      if (before && has_next)
        list.push_back(of(InstructionKind::SendActivation, before->microbatch));
    }
    if (now)
      list.push_back(
          of(now->forward ? InstructionKind::Forward : InstructionKind::Backward, now->microbatch));
    return list;
  }

  int stage_;
  int stages_;
  int microbatches_;
  int buffers_;
};

/// Returns the steps of DeepSpeed's InferenceSchedule. Neighbors send and receive in opposite
/// order, so that blocking transfers meet.
Steps inference_steps(int stage, int stages, int microbatches) {
  Steps steps;
  for (int step = 0; step < microbatches + stages - 1; ++step) {
    const int m = step - stage;
    const auto of = [&](InstructionKind kind, int microbatch) {
      return Instruction{kind, stage, microbatch, microbatch % 2};
    };
    const bool now = m >= 0 && m < microbatches, before = m >= 1 && m <= microbatches;
    std::vector<Instruction> send, receive, list;
    if (before && stage + 1 < stages)
      send.push_back(of(InstructionKind::SendActivation, m - 1));
    if (now && stage > 0)
      receive.push_back(of(InstructionKind::ReceiveActivation, m));
    if (now && (stage == 0 || stage + 1 == stages))
      list.push_back(of(InstructionKind::Load, m));
    for (const auto* part : {stage % 2 == 0 ? &send : &receive, stage % 2 == 0 ? &receive : &send})
      list.insert(list.end(), part->begin(), part->end());
    if (now)
      list.push_back(of(InstructionKind::Forward, m));
    steps.push_back(std::move(list));
  }
  return steps;
}

}  // namespace

DeepSpeedStream deepspeed_train(int ranks, int microbatches) {
  check_sizes("deepspeed-train", ranks, microbatches);
  DeepSpeedStream stream{.microbatches = microbatches, .ranks = {}, .buffers = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const TrainRank train(rank, ranks, microbatches);
    stream.ranks.push_back(train.steps());
    stream.buffers.push_back(train.buffers());
  }
  return stream;
}

DeepSpeedStream deepspeed_inference(int ranks, int microbatches) {
  check_sizes("deepspeed-inference", ranks, microbatches);
  DeepSpeedStream stream{.microbatches = microbatches, .ranks = {}, .buffers = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    stream.ranks.push_back(inference_steps(rank, ranks, microbatches));
    stream.buffers.push_back(2);
  }
  return stream;
}

DeepSpeedStream deepspeed_data_parallel(int ranks, int microbatches) {
  check_sizes("data-parallel", ranks, microbatches);
  DeepSpeedStream stream{.microbatches = ranks * microbatches, .ranks = {}, .buffers = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& steps = stream.ranks.emplace_back();
    for (int m = rank * microbatches; m < (rank + 1) * microbatches; ++m)
      steps.push_back({{InstructionKind::Load, 0, m, 0},
                       {InstructionKind::Forward, 0, m, 0},
                       {InstructionKind::Backward, 0, m, 0}});
    steps.back().push_back({InstructionKind::ReduceGradients, 0});
    steps.back().push_back({InstructionKind::OptimizerStep, 0});
    stream.buffers.push_back(1);
  }
  return stream;
}

std::optional<std::string_view> deepspeed_name(InstructionKind kind) {
  const std::string_view name = traits_of(kind).deepspeed;
  return name.empty() ? std::nullopt : std::optional(name);
}

std::optional<InstructionKind> from_deepspeed_name(std::string_view name) {
  for (const InstructionTraits& row : instruction_traits)
    if (!name.empty() && row.deepspeed == name)
      return row.kind;
  return {};
}

std::string deepspeed_text(const Instruction& instruction) {
  const auto name = deepspeed_name(instruction.kind).value_or("?");
  if (instruction.slot < 0)
    return std::string(name);
  return fmt::format("{}({})", name, instruction.slot);
}

Program to_program(const DeepSpeedStream& stream) {
  LoweringOptions options;
  options.communicators = CommunicatorLayout::Pair;
  options.transfers = TransferMode::Rendezvous;
  options.blocking = true;
  Program program = from_schedule(to_schedule(stream), options);
  for (std::size_t rank = 0; rank < stream.ranks.size(); ++rank) {
    program.ranks[rank].clear();
    for (const auto& step : stream.ranks[rank])
      program.ranks[rank].insert(program.ranks[rank].end(), step.begin(), step.end());
  }
  return program;
}

Schedule to_schedule(const DeepSpeedStream& stream) {
  Schedule schedule{.microbatches = stream.microbatches, .ranks = {}};
  for (const auto& steps : stream.ranks) {
    auto& actions = schedule.ranks.emplace_back();
    for (const auto& step : steps)
      for (const Instruction& i : step) {
        if (const auto action = traits_of(i.kind).action)
          actions.push_back({*action, i.stage, i.microbatch});
      }
  }
  return schedule;
}

namespace {

GeneratedSchedule as_made(DeepSpeedStream stream) {
  return {.schedule = to_schedule(stream), .stream = std::move(stream)};
}

}  // namespace

ScheduleDescriptor schedule::deepspeed_train() {
  return {.name = "deepspeed-train",
          .is_instruction_stream = true,
          .make =
              [](const ScheduleRequest& r) {
                return as_made(plan::deepspeed_train(r.ranks, r.microbatches));
              },
          .bubble = flush_bubble(),
          .activations = one_f_one_b_activations()};
}

ScheduleDescriptor schedule::deepspeed_inference() {
  return {.name = "deepspeed-inference",
          .is_forward_only = true,
          .is_instruction_stream = true,
          .make =
              [](const ScheduleRequest& r) {
                return as_made(plan::deepspeed_inference(r.ranks, r.microbatches));
              },
          .bubble = {"(P-1)F", [](const ScheduleSizes& s) { return (s.ranks - 1) * s.forward; }},
          .activations = constant("1", 1)};
}

}  // namespace pipewright::plan
