#pragma once

// Gives parts of tensors memory of their own. Kernels depend on a tensor's alignment and may sum in
// another order. So a part that is multiplied is aligned like a whole tensor, and its bits do not
// depend on the tensor it belongs to.

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// Returns the part, copied to new memory if it is not contiguous or not aligned like a whole
/// tensor.
at::Tensor as_one_of_its_own(const at::Tensor& part);

/// Returns the same value, whose gradient is copied to new memory if it is not contiguous from the
/// beginning of its memory.
at::Tensor with_own_gradient(const at::Tensor& value);

}  // namespace pipewright::exec
