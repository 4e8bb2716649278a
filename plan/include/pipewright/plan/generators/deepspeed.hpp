#pragma once

// DeepSpeed's pipeline schedules (deepspeed.runtime.pipe.schedule): the instructions of each rank
// in each time step, with the buffers that they use. The instructions are those of our Programs,
// and every DeepSpeed name maps to one of them and back.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// The instructions of a DeepSpeed schedule.
struct DeepSpeedStream {
  int microbatches = 0;
  std::vector<std::vector<std::vector<Instruction>>> ranks;  // rank → step → instructions
  std::vector<int> buffers;                                  // number of buffers of each rank
};

/// TrainSchedule: 1F1B in 2(M + P - 1) steps. Rank r has max(2, min(P - r, M)) buffers, and
/// microbatch m uses buffer m modulo that. All three functions throw InputError without ranks or
/// microbatches.
DeepSpeedStream deepspeed_train(int ranks, int microbatches);
/// InferenceSchedule: M + P - 1 steps, two buffers in turn.
DeepSpeedStream deepspeed_inference(int ranks, int microbatches);
/// DataParallelSchedule: M steps, one buffer; every rank has the whole model and its own
/// microbatches.
DeepSpeedStream deepspeed_data_parallel(int ranks, int microbatches);

/// Returns DeepSpeed's name, such as "ForwardPass", or nothing for a kind that DeepSpeed does not
/// have.
std::optional<std::string_view> deepspeed_name(InstructionKind kind);
std::optional<InstructionKind> from_deepspeed_name(std::string_view name);
/// Returns "ForwardPass(0)" with the buffer, or "ReduceGrads" for an instruction without one.
std::string deepspeed_text(const Instruction& instruction);

/// Converts the stream to a Program with blocking rendezvous between pairs of ranks, as DeepSpeed
/// runs it.
Program to_program(const DeepSpeedStream& stream);
/// Returns only the compute actions, in their order.
Schedule to_schedule(const DeepSpeedStream& stream);

}  // namespace pipewright::plan
