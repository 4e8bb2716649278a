#pragma once

// The inputs of a rank's stages: from other ranks by receives, from stages of the same rank by
// reference.

#include <map>
#include <memory>

#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/job/job_rank.hpp"
#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "progress.hpp"
#include "stopwatch.hpp"

namespace pipewright::exec {

using Stages = std::map<int, std::unique_ptr<Stage>>;

class Inbox {
 public:
  /// Keeps references to its arguments.
  Inbox(const JobRank& job_rank, at::Device device, Shapes shapes, Stages& stages,
        Transport& transport, const MemoryAccount& account, Stopwatch& stopwatch,
        Progress& progress);

  /// Prepares a pass of `program`, which must outlive the pass.
  void begin(const plan::Program& program);
  const Stream& stream() const { return stream_; }
  Transfer transfer_of(const plan::Instruction& i) const;

  /// Sends the tensors of an instruction.
  void send(const plan::Instruction& i, Tensors tensors);
  /// Posts a receive that the rank's list has come to.
  void post(const plan::Instruction& receive);
  /// Waits for the data of a posted receive and passes them to its stage. On a GPU the transfer
  /// overlaps with compute, and the compute stream waits for it.
  void complete(const plan::Instruction& receive);
  /// Passes the inputs that action `i` needs, if any, to its stage. Waits for them if necessary.
  void fetch(const plan::Instruction& i);
  /// Passes the results of action `i` to the next stage if it is on this rank, without a transfer.
  void pass_within_rank(const plan::Instruction& i);

 private:
  void deliver(const plan::Instruction& receive, Tensors tensors);

  const JobRank& job_rank_;
  Stream stream_;
  const Shapes shapes_;
  Stages& stages_;
  Transport& transport_;
  const MemoryAccount& account_;
  Stopwatch& stopwatch_;
  Progress& progress_;
  const plan::Program* program_ = nullptr;
  std::map<plan::InstructionKey, Timestamp> posted_;  // receives whose data nothing has needed yet
  std::map<plan::InstructionKey, Tensors>
      passed_within_rank_;  // between stages of this rank, by receive
};

}  // namespace pipewright::exec
