#pragma once

// The actions of a pipeline that a rank's trace shows: a pure function from its events.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/program/instruction.hpp"
#include "pipewright/plan/schedules/action.hpp"
#include "pipewright/trace/explain/pipeline_events.hpp"

namespace pipewright::trace {

/// How actions were found.
enum class ActionSource {
  Ranges,            // "PP:2F0": stage, kind and microbatch are told
  MicrobatchRanges,  // "Forward 3": the stage is the rank's place in the pipeline
  Passing,           // ranges of Megatron's sends and receives, between which actions lie
  Functions,         // torch's, Megatron's or DeepSpeed's, likewise; microbatches in their order
  Operators,         // no range tells: forward operators, the engine's, the arrows between them
};
std::string to_string(ActionSource source);

/// An operator of a forward and its part of the backward, in seconds.
struct TracedOperator {
  std::string name;
  double forward = 0;
  double backward = 0;
};

struct TracedAction {
  plan::Action action;  // its stage is -1 where the trace does not tell it
  double start = 0;
  double end = 0;
  std::vector<TracedOperator> operators{};  // of a forward; empty where they are not told apart
};

/// From where a rank has reached it to where it is over for the rank.
struct TracedTransfer {
  plan::Instruction instruction;  // likewise
  double start = 0;
  double end = 0;
};

struct TracedStep {
  std::optional<int> number{};  // of "ProfilerStep#7"
  std::vector<TracedAction> actions{};
  std::vector<TracedTransfer> transfers{};
  double optimizer_start = 0, optimizer_end = 0;  // both 0: not there
  int microbatches = 0;
  bool whole = true;  // each forward has its backward, and the trace goes on behind it
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

/// Throws InputError that names the file where it shows no pipeline, or one that cannot be told
/// apart, and says what would be right.
TracedRank traced_rank(const PipelineEvents& events);

}  // namespace pipewright::trace
