#pragma once

// AlexNet over CIFAR-10, planned layer by layer; engine/models/alexnet.hpp builds it.

#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

/// AlexNet for CIFAR-10 in 22 layers: the usual worked example of pipeline tutorials. `image_size`
/// is the side to which the 32x32 images are enlarged; at least 63.
struct AlexNetShape {
  static constexpr auto kind = "alexnet";
  int classes = 10;
  int image_size = 224;
  friend bool operator==(const AlexNetShape&, const AlexNetShape&) = default;
};
template <>
const ModelDescriptor& descriptor_of<AlexNetShape>();

Model alexnet_model(const AlexNetShape& shape);

}  // namespace pipewright::plan
