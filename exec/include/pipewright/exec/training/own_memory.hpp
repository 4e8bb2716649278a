#pragma once

// Gives parts of tensors memory of their own. Kernels depend on a tensor's alignment and may sum in
// another order, so a part that is multiplied is aligned like a whole tensor; its bits then do not
// depend on the tensor it is part of.

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// Returns the part, copied to memory of its own if it is not contiguous or not aligned like a
/// whole tensor.
at::Tensor as_one_of_its_own(const at::Tensor& part);

/// Returns the same value, whose gradient is made contiguous with memory of its own.
at::Tensor with_own_gradient(const at::Tensor& value);

}  // namespace pipewright::exec
