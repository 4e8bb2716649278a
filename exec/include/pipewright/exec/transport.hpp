#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <stdexcept>

#include "pipewright/plan/program.hpp"

namespace pipewright::exec {

/// Thrown from a wait that another rank's end has cut short.
class Aborted : public std::runtime_error {
 public:
  Aborted() : std::runtime_error("another rank has stopped") {}
};

/// Moves activations and gradients between ranks. The in-process transport hands tensors from
/// thread to thread by reference; others will move them between processes. Callers see no
/// difference.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Starts a send. Returns at once, unless the Program is blocking with rendezvous transfers: then
  /// once the receiver has taken the tensor.
  virtual void send(const plan::Instruction& send, at::Tensor tensor) = 0;
  /// The tensor that the counterpart of `receive` sends; blocks until it is there.
  virtual at::Tensor receive(const plan::Instruction& receive) = 0;
  /// Ends every wait, now and later, by Aborted.
  virtual void abort() = 0;
};

/// All ranks are threads of this process and share this object.
std::unique_ptr<Transport> make_in_process_transport(const plan::Program& program);

}  // namespace pipewright::exec
