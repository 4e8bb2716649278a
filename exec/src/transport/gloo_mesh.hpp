#pragma once

// Connections over which all ranks of a job send bytes to each other. This header hides all use of
// Gloo.

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

class Job;

/// One process group of all ranks. The constructor connects every pair of ranks, so that no two
/// ranks can connect in different orders later. Gloo matches sends and receives by tag, in the
/// order within a tag, so a transfer never waits for another one that has not been requested yet.
/// May be used from several threads.
class GlooMesh {
 public:
  /// Tells if arrived data are handled at once, although the rank's core is computing, or when that
  /// core is idle.
  enum class Arrivals { Interrupt, Wait };

  /// Every rank makes its meshes in the same order, with different names.
  GlooMesh(Job& job, const std::string& name, Arrivals arrivals = Arrivals::Interrupt);
  ~GlooMesh();

  /// A send or receive under way, which keeps its bytes alive.
  struct Operation {
    c10::intrusive_ptr<c10d::Work> work;
    int peer = 0;
  };

  /// Both functions return at once. `bytes` must be contiguous.
  Operation send(at::Tensor bytes, int to, int tag);
  Operation receive(at::Tensor bytes, int from, int tag);
  /// Blocks until the operation is done, without a timeout: on its own timeout Gloo would close all
  /// connections, so waits end with the job instead. Throws Aborted.
  void wait(const Operation& operation);
  /// Blocks likewise, but does not report a connection that ends. Returns its error, or an empty
  /// string if the operation is done.
  std::string wait_or_end(const Operation& operation);

  /// Returns the bytes passed to Gloo so far, for all ranks.
  plan::Bytes sent() const;

  /// Ends every current and later wait.
  void end(const std::string& why);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipewright::exec
