#pragma once

// Finds the pipeline actions in a rank's trace: a pure function of its events.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/program/instruction.hpp"
#include "pipewright/plan/schedules/action.hpp"
#include "pipewright/trace/explain/pipeline_events.hpp"

namespace pipewright::trace {

/// The method by which actions were found.
enum class ActionSource {
  Ranges,            // "PP:2F0": names stage, kind and microbatch
  MicrobatchRanges,  // "Forward 3": the stage is the rank's place in the pipeline
  Passing,           // ranges of Megatron's sends and receives, with actions between them
  Functions,         // Python functions of torch, Megatron or DeepSpeed; microbatches in order
  Operators,         // no ranges: forward operators, the autograd engine's, and the arrows between
                     // them
};
std::string to_string(ActionSource source);

/// An operator of a forward and its part of the backward, in seconds.
struct TracedOperator {
  std::string name;
  double forward = 0;
  double backward = 0;
};

struct TracedAction {
  plan::Action action;  // stage -1 if the trace does not name it
  double start = 0;
  double end = 0;
  std::vector<TracedOperator> operators{};  // of a forward; empty if they cannot be told apart
};

/// A transfer from the time at which the rank reaches it until it is over for the rank.
struct TracedTransfer {
  plan::Instruction instruction;  // stage -1 if the trace does not name it
  double start = 0;
  double end = 0;
};

struct TracedStep {
  std::optional<int> number{};  // number of "ProfilerStep#7"
  std::vector<TracedAction> actions{};
  std::vector<TracedTransfer> transfers{};
  double optimizer_start = 0, optimizer_end = 0;  // both 0: absent
  int microbatches = 0;
  bool whole = true;  // every forward has its backward, and the trace continues after the step
};

struct TracedRank {
  std::string file;
  std::optional<int> rank{};
  std::optional<int> world_size{};
  std::vector<RankGroup> groups{};
  std::optional<std::int64_t> origin_ns{};
  ActionSource source = ActionSource::Ranges;
  bool on_device = false;  // times are the device's
  std::vector<TracedStep> steps{};
};

/// Finds the actions of a rank. Throws InputError that names the file if it shows no pipeline, or
/// one whose actions cannot be told apart, and says what a usable trace needs.
TracedRank traced_rank(const PipelineEvents& events);

}  // namespace pipewright::trace
