#pragma once

// What comes into a rank's stages: from other ranks by receives, from stages of the same rank by
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
  /// References are kept.
  Inbox(const JobRank& job_rank, at::Device device, Shapes shapes, Stages& stages,
        Transport& transport, const MemoryAccount& account, Stopwatch& stopwatch,
        Progress& progress);

  /// Before a pass of `program`, which must outlive it.
  void begin(const plan::Program& program);
  const Stream& stream() const { return stream_; }
  Transfer transfer_of(const plan::Instruction& i) const;

  /// The rank has come to this receive.
  /// What the instruction sends.
  void send(const plan::Instruction& i, Tensors tensors);
  void post(const plan::Instruction& receive);
  /// Waits for the data of a posted receive and lays it where its action looks for it. On a GPU it
  /// comes in beside the compute, which waits for it there.
  void complete(const plan::Instruction& receive);
  /// Lays down what `i` takes in, if it does, and waits for it if need be.
  void fetch(const plan::Instruction& i);
  /// Stages of one rank hand over without a transfer.
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
