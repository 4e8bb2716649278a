#pragma once

// A group of ranks that send to each other over NCCL.

#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/job/job.hpp"

namespace pipewright::exec {

/// Some ranks of a job, connected over NCCL, and a queue of operations between them. Operations run
/// one after the other, in an order on which both ends of each agree. Calls submit and return. The
/// first operation between two ranks would wait for the other one, so the constructor connects all
/// of them. Only this class and `NcclLibrary` call NCCL.
class NcclCommunicator {
 public:
  /// Every member calls it at the same point of the program, with a `name` that no other
  /// communicator has. `members` are ranks of the job, in ascending order. Throws Aborted.
  NcclCommunicator(Job& job, const std::string& name, std::vector<int> members, at::Device device);
  /// Aborts operations under way, unless the communicator has been closed.
  ~NcclCommunicator();

  struct Outgoing {
    Tensors values;  // contiguous
    int to = 0;      // a rank of the job
  };
  struct Incoming {
    Tensors places;  // contiguous, allocated on `stream`
    int from = 0;
  };
  /// Submits all transfers as one operation, after the work already on the current stream. Returns
  /// the event of its end.
  Event move(const std::vector<Outgoing>& out, const std::vector<Incoming>& in);

  /// Returns the stream of the operations, on which receive buffers must be allocated.
  const Stream& stream() const { return stream_; }
  /// Returns NCCL's description of an asynchronous error; empty if there is none.
  std::string failure() const;
  /// Aborts operations under way, from any thread. Later operations throw Aborted.
  void abort();
  /// Finalizes the communicator. All members call it once the stream is done: data that this member
  /// has sent may still be on its way, and an abort would lose them. Throws Aborted.
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
