#pragma once

// The executor's interface to communication between ranks, implemented for threads, Gloo and NCCL.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::exec {

/// One point-to-point transfer: its instruction in the Program, and the ranks of the job that it
/// connects.
struct Transfer {
  plan::Instruction instruction;  // the send on the sender, the receive on the receiver
  int from = 0;
  int to = 0;
};

/// The way in which processes send tensors between stages.
struct TransferOptions {
  plan::CommunicatorLayout communicators = plan::CommunicatorLayout::Edge;
  bool wait_until_taken = false;  // a send blocks until the receiver has taken the tensors
};

/// Fixed: boundary tensors have equal shapes in all microbatches of a pass, so only the first
/// transfer of each pair of stages includes the shapes. Varying: each transfer includes its own.
enum class Shapes { Fixed, Varying };

/// The caller of a collective. Collectives of one group in different lanes do not queue after each
/// other.
enum class Lane {
  Beside,   // the background thread that runs the collectives of the rank's list
  Compute,  // the rank's own thread, within an action
};

/// Moves tensors between the ranks of a job; this process may have one of them, several or all.
/// Callers see no difference between transports. Several threads may call a transport, but for each
/// rank only one at a time, and one more for its collectives in the background. On a GPU no call
/// blocks until the device has finished: a tensor that has "arrived" is ordered before the later
/// work of the calling thread's stream.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Starts a send. Returns at once, except in a blocking Program with rendezvous transfers: then
  /// it returns once the receiver has taken the tensors. They must not be changed afterwards. The
  /// receiver also gets whether each tensor requires a gradient.
  virtual void send(const Transfer& transfer, Tensors tensors) = 0;
  /// Returns the tensors that the counterpart of `transfer` sends. Blocks until they have arrived.
  virtual Tensors receive(const Transfer& transfer) = 0;
  /// Announces all transfers of `rank` in the pass that begins, in their order. A transport between
  /// processes uses them to connect its ranks and to post receives ahead. All ranks must begin the
  /// same passes in the same order.
  virtual void expect(int /*rank*/, const std::vector<Transfer>& /*transfers*/, Shapes /*shapes*/) {
  }
  /// Posts a receive when the Program reaches it. `receive` completes it.
  virtual void post(const Transfer& /*transfer*/) {}

  /// Exchanges tensors: each rank of `group`, in ascending order, passes a part for each rank and
  /// gets the parts for it, in the order of ranks. Every rank of the group must call it, and the
  /// calls of a group in a lane must have the same order on all ranks. The result may be another
  /// rank's own memory. Before you modify a tensor that you passed in, call an empty gather as a
  /// barrier.
  virtual std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                          const std::vector<Tensors>& parts, Lane lane) = 0;
  /// Passes the same part to all ranks.
  std::vector<Tensors> all_gather(const std::vector<int>& group, int rank, const Tensors& mine) {
    return all_to_all(group, rank, std::vector<Tensors>(group.size(), mine), Lane::Beside);
  }

  /// Throws Aborted if the job has ended, since tensors received afterwards may hold anything.
  virtual void require_going() {}
  /// Blocks until `done`, which is polled, returns true or the job ends. If the job ends, throws
  /// Aborted whatever the device still has to do. `where` is for reports.
  virtual void wait_for_device(const std::function<bool()>& done, const std::string& where);
  /// Ends every wait on every rank of the job, now and later, with an Aborted that has this reason.
  virtual void abort(const std::string& why) = 0;
};

}  // namespace pipewright::exec
