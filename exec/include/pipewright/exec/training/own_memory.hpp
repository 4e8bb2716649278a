#pragma once

// Kernels choose by where a tensor begins, and add up in another order elsewhere: a part that is
// multiplied lies as a tensor of its own does, so that its bits do not depend on what it is part
// of.

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// The same numbers, in memory of their own where the part does not begin like such.
at::Tensor as_one_of_its_own(const at::Tensor& part);

/// The same value, whose gradient lies so.
at::Tensor with_own_gradient(const at::Tensor& value);

}  // namespace pipewright::exec
