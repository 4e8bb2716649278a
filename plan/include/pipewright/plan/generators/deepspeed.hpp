#pragma once

// DeepSpeed's pipeline schedules: what each rank does in each of its time steps, with the buffers
// that it uses (deepspeed.runtime.pipe.schedule). The instructions are those of our Programs, and
// every name of DeepSpeed's maps to one of them and back.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

struct DeepSpeedStream {
  int microbatches = 0;
  std::vector<std::vector<std::vector<Instruction>>> ranks;  // rank → step → instructions
  std::vector<int> buffers;                                  // how many each rank has
};

/// TrainSchedule: 1F1B in 2(M + P - 1) steps; rank r has max(2, min(P - r, M)) buffers, and
/// microbatch m lies in buffer m modulo that. All three throw InputError without ranks or
/// microbatches.
DeepSpeedStream deepspeed_train(int ranks, int microbatches);
/// InferenceSchedule: M + P - 1 steps, two buffers in turn.
DeepSpeedStream deepspeed_inference(int ranks, int microbatches);
/// DataParallelSchedule: M steps, one buffer, every rank the whole model on its own microbatches.
DeepSpeedStream deepspeed_data_parallel(int ranks, int microbatches);

/// "ForwardPass"; nothing for a kind that DeepSpeed has no word for.
std::optional<std::string_view> deepspeed_name(InstructionKind kind);
std::optional<InstructionKind> from_deepspeed_name(std::string_view name);
/// "ForwardPass(0)" with the buffer, "ReduceGrads" where there is none.
std::string deepspeed_text(const Instruction& instruction);

/// The stream as a Program: blocking rendezvous between pairs of ranks, as DeepSpeed runs it.
Program to_program(const DeepSpeedStream& stream);
/// The compute actions alone, in their order.
Schedule to_schedule(const DeepSpeedStream& stream);

}  // namespace pipewright::plan
