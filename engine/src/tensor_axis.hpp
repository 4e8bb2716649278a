#pragma once

// DeepSpeed and Megatron-LM call the tensor-parallel axis of a topology "model".

#include <algorithm>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::engine {

/// Returns "tensor" for "model", and any other name as it is.
inline std::string axis_name(const std::string& axis) { return axis == "model" ? "tensor" : axis; }

/// Returns the topology with its axis "model", if any, under the name "tensor". Throws InputError
/// if it has both.
inline plan::Topology with_tensor_axis(const plan::Topology& topology) {
  std::vector<std::string> axes = topology.axes();
  std::ranges::transform(axes, axes.begin(), axis_name);
  return {std::move(axes), topology.lengths()};
}

}  // namespace pipewright::engine
