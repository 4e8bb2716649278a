#pragma once

// Layers that another program trains, of which their costs are known and no operators: those of a
// PyTorch job, measured or traced.

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
