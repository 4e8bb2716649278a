#pragma once

// Undoes changes of buffers, so that a recomputed forward does not count twice.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// While it exists, layers may change these buffers, such as a batch norm's running means. Its
/// destructor restores their values.
class BufferRestorer {
 public:
  explicit BufferRestorer(const Tensors& buffers) {
    const at::NoGradGuard no_grad;
    for (const at::Tensor& buffer : buffers)
      before_.emplace_back(buffer, buffer.clone());
  }
  ~BufferRestorer() {
    const at::NoGradGuard no_grad;
    for (auto& [buffer, before] : before_)
      buffer.copy_(before);
  }
  BufferRestorer(const BufferRestorer&) = delete;
  BufferRestorer& operator=(const BufferRestorer&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> before_;
};

}  // namespace pipewright::exec
