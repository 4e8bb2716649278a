#pragma once

// A model whose layers another program trains, such as a PyTorch job that was measured or traced:
// their costs are known, but not their operators.

#include <string>
#include <vector>

#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

struct MeasuredLayer {
  std::string name;
  Bytes parameters{};
  friend bool operator==(const MeasuredLayer&, const MeasuredLayer&) = default;
};

struct MeasuredShape {
  static constexpr auto kind = "measured";
  std::vector<MeasuredLayer> layers{{.name = "first"}, {.name = "second"}};
  friend bool operator==(const MeasuredShape&, const MeasuredShape&) = default;
};
template <>
const ModelDescriptor& descriptor_of<MeasuredShape>();

}  // namespace pipewright::plan
