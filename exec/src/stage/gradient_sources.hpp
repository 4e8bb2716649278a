#pragma once

// The pipelines whose tokens contribute to a parameter's gradient. With expert parallelism, each
// rank computes the gradients of its own experts for the tokens of all pipelines. They are summed
// by pipeline, as each pipeline's own rank would sum them.

#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// An alias of a parameter (ParameterAlias), whose gradient comes from another pipeline's tokens.
struct GradientAlias {
  std::size_t parameter = 0;
  int source = 0;
  at::Tensor leaf;
};

struct GradientSources {
  int own = 0;  // index of this rank's pipeline
  // Gradient groups of a pipeline, in all its directions; pipelines have consecutive groups.
  int groups_of_each = 1;
  std::vector<GradientAlias> aliases{};  // aliases of one parameter, in the order of pipelines
};

}  // namespace pipewright::exec
