#pragma once

// DeepSpeed's pipeline schedules (deepspeed.runtime.pipe.schedule): the instructions of each rank
// in each time step, with the buffers that they use. A DeepSpeed instruction is represented by
// Pipewright's equivalent one (RecvGrad by InstructionKind::ReceiveGradient), with its buffer id in
// `Instruction::slot`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// The instructions of a DeepSpeed schedule.
struct DeepSpeedStream {
  int microbatches = 0;                                      // of all ranks together
  std::vector<std::vector<std::vector<Instruction>>> ranks;  // rank → step → instructions
  std::vector<int> buffers;                                  // number of buffers of each rank
};

/// TrainSchedule: 1F1B on P ranks with M microbatches, in 2(M + P - 1) time steps. Rank r has
/// max(2, min(P - r, M)) buffers, and microbatch m uses buffer m modulo that. This and the next two
/// functions throw InputError if `ranks` or `microbatches` is less than 1.
DeepSpeedStream deepspeed_train(int ranks, int microbatches);
/// InferenceSchedule: forwards only, in M + P - 1 time steps. Each rank alternates between two
/// buffers.
DeepSpeedStream deepspeed_inference(int ranks, int microbatches);
/// DataParallelSchedule: every rank has the whole model and runs `microbatches` of its own, one per
/// time step, in a single buffer.
DeepSpeedStream deepspeed_data_parallel(int ranks, int microbatches);

/// Returns DeepSpeed's name of an instruction, such as "ForwardPass"; nothing if DeepSpeed has no
/// such instruction.
std::optional<std::string_view> deepspeed_name(InstructionKind kind);
std::optional<InstructionKind> from_deepspeed_name(std::string_view name);
/// Returns the instruction as "ForwardPass(0)", where 0 is the buffer id, or as "ReduceGrads" if it
/// uses no buffer.
std::string deepspeed_text(const Instruction& instruction);

/// Converts the stream to a Program with DeepSpeed's communication: one communicator per pair of
/// ranks, and transfers that block both ends until they meet (rendezvous).
Program to_program(const DeepSpeedStream& stream);
/// Returns each rank's compute actions in order, without communication and time steps.
Schedule to_schedule(const DeepSpeedStream& stream);

}  // namespace pipewright::plan
