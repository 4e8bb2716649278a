#pragma once

// The edge of the executor: how tensors get from rank to rank. Threads, Gloo and NCCL are behind
// it.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::exec {

/// One send or receive: what the Program calls it, and between which ranks of the job it runs.
struct Transfer {
  plan::Instruction instruction;  // the send on the one side, the receive on the other
  int from = 0;
  int to = 0;
};

/// How processes pass on what a stage makes.
struct TransferOptions {
  plan::CommunicatorLayout communicators = plan::CommunicatorLayout::Edge;
  bool wait_until_taken = false;  // a send returns only then
};

/// Whether tensors between two stages look alike in all microbatches of a pass: then the first
/// transfer of each pair says the shapes for all, else each transfer says its own.
enum class Shapes { Fixed, Varying };

/// Who calls a collective. Two of a group do not stand behind each other when these differ.
enum class Lane {
  Beside,   // what does the collectives of the rank's list, beside its compute
  Compute,  // the rank itself, in the middle of an action
};

/// Moves tensors between the ranks of a job. This process holds one of them, several or all.
/// Callers see no difference between transports. A transport may be called from several threads,
/// for one rank by one thread at a time and one more for its collectives beside. On a GPU "there"
/// means that the calling thread's stream comes to it once it is there: no call waits for the
/// device.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Starts a send. Returns at once, unless the Program is blocking with rendezvous transfers: then
  /// once the receiver has taken the tensors. They must not be changed afterwards. Whether a tensor
  /// requires a gradient arrives with it.
  virtual void send(const Transfer& transfer, Tensors tensors) = 0;
  /// What the counterpart of `transfer` sends; blocks until it is there.
  virtual Tensors receive(const Transfer& transfer) = 0;
  /// All transfers of `rank` in the pass that begins, in their order: a transport between processes
  /// connects its ranks by them and posts receives ahead. All ranks begin their passes alike.
  virtual void expect(int /*rank*/, const std::vector<Transfer>& /*transfers*/, Shapes /*shapes*/) {
  }
  /// Says that the Program has come to this receive, which `receive` will ask for.
  virtual void post(const Transfer& /*transfer*/) {}

  /// Each member of `group`, ranks in rising order, hands in a part for each member. Once all have,
  /// it gets the parts that are for it, in the order of members. Every member calls it, and the
  /// calls of a group in a lane come in the same order everywhere. What comes back may be another
  /// member's own memory: to change what was handed in, gather nothing first, so that all have
  /// read.
  virtual std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                          const std::vector<Tensors>& parts, Lane lane) = 0;
  /// The same part for all.
  std::vector<Tensors> all_gather(const std::vector<int>& group, int rank, const Tensors& mine) {
    return all_to_all(group, rank, std::vector<Tensors>(group.size(), mine), Lane::Beside);
  }

  /// Throws Aborted where the job has ended: what came in since may be anything.
  virtual void require_going() {}
  /// Waits for a device: until `done`, which is asked again and again, or the job ends. Then throws
  /// Aborted, whatever the device still waits for. `where` is for reports.
  virtual void wait_for_device(const std::function<bool()>& done, const std::string& where);
  /// Ends every wait on every rank of the job, now and later, by Aborted with this reason.
  virtual void abort(const std::string& why) = 0;
};

}  // namespace pipewright::exec
