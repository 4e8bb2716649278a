#pragma once

// Where pipelines share out experts, each rank makes the gradients of its own experts for the
// tokens of all of them. They are summed by pipeline, as that pipeline's own rank would.

#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// A parameter once more (ParameterAlias), and its gradient, which is that of another pipeline.
struct GradientAlias {
  std::size_t parameter = 0;
  int source = 0;
  at::Tensor leaf;
};

struct GradientSources {
  int own = 0;             // which pipeline of them this is
  int groups_of_each = 1;  // of each pipeline, in all its directions; those of the next follow
  std::vector<GradientAlias> aliases{};  // of one parameter in the order of pipelines
};

}  // namespace pipewright::exec
