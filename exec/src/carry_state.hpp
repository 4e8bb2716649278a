#pragma once

#include "pipewright/exec/executor.hpp"

namespace pipewright::exec {

/// Gives `to` the weights, the optimizer's states and the loss scale of `from`. Both have the same
/// stages on the same ranks, one copy of each: of several an executor shows one alone.
void carry_state(const Executor& from, Executor& to);

}  // namespace pipewright::exec
