#pragma once

// A group of ranks that send to each other over NCCL.

#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/job/job.hpp"

namespace pipewright::exec {

/// Some ranks of a job, connected over NCCL, and a queue of what moves between them: one operation
/// after the other, in an order that both ends of each have in common. Calls submit and return; a
/// first operation between two ranks would wait for the other one, so all of them are connected in
/// the constructor. Everything of NCCL is behind this header.
class NcclCommunicator {
 public:
  /// Every member makes it, at the same point; no two have the same `name`. `members`: ranks of the
  /// job, in rising order. Throws Aborted.
  NcclCommunicator(Job& job, const std::string& name, std::vector<int> members, at::Device device);
  /// Ends what is under way, unless it has been closed.
  ~NcclCommunicator();

  struct Outgoing {
    Tensors values;  // contiguous
    int to = 0;      // a rank of the job
  };
  struct Incoming {
    Tensors places;  // contiguous, allocated on `stream`
    int from = 0;
  };
  /// Submits all of it as one operation, after what the current stream has been given. The event is
  /// of its end.
  Event move(const std::vector<Outgoing>& out, const std::vector<Incoming>& in);

  /// The queue, where places are to be allocated.
  const Stream& stream() const { return stream_; }
  /// What NCCL says has gone wrong since; empty: nothing.
  std::string failure() const;
  /// From any thread: ends what is under way; afterwards nothing moves.
  void abort();
  /// The end in order, which all members come to once the stream is done: what this one has sent
  /// may still be on its way then, and ended otherwise it would be lost. Throws Aborted.
  void close();

 private:
  struct State;
  int index_of(int rank) const;

  Job& job_;
  const std::string name_;
  std::vector<int> members_;
  Stream stream_;
  std::shared_ptr<State> state_;
};

}  // namespace pipewright::exec
