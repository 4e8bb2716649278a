#pragma once

// Connections between all ranks of a job, and the bytes that go over them. Everything of Gloo is
// behind this header.

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

class Job;

/// One process group of all ranks: a connection for every pair of them, made at once in the
/// constructor, so that nothing is left that two ranks could begin in different orders. Gloo
/// matches a send with the receive of the same tag, in the order of that tag alone: a transfer
/// never stands behind another one that nobody has asked for yet. May be used from several threads.
class GlooMesh {
 public:
  /// Whether what has come is taken at once, though the rank's core computes, or when that rests.
  enum class Arrivals { Interrupt, Wait };

  /// Every rank makes its meshes in the same order; `name` tells them apart.
  GlooMesh(Job& job, const std::string& name, Arrivals arrivals = Arrivals::Interrupt);
  ~GlooMesh();

  /// A send or receive under way. Keeps its bytes alive.
  struct Operation {
    c10::intrusive_ptr<c10d::Work> work;
    int peer = 0;
  };

  /// Both return at once. `bytes` is contiguous.
  Operation send(at::Tensor bytes, int to, int tag);
  Operation receive(at::Tensor bytes, int from, int tag);
  /// Until it is done, however long that takes: Gloo answers a time-out of its own by closing all
  /// connections, so it is the job that ends a wait. Throws Aborted.
  void wait(const Operation& operation);
  /// The same, but it is no failure where the connection ends: what it said then; empty: it is
  /// done.
  std::string wait_or_end(const Operation& operation);

  /// What has been handed to Gloo so far, to whichever rank.
  plan::Bytes sent() const;

  /// Ends every wait, now and later.
  void end(const std::string& why);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipewright::exec
