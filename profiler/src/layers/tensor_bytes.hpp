#pragma once

// Sizes of tensors in bytes.

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::profiler {

/// Returns the bytes of all defined tensors.
inline plan::Bytes bytes_of(const exec::Tensors& tensors) {
  plan::Bytes bytes;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined())
      bytes += plan::Bytes{static_cast<std::int64_t>(tensor.nbytes())};
  return bytes;
}

}  // namespace pipewright::profiler
