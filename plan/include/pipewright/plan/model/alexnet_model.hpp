#pragma once

// AlexNet over CIFAR-10, planned layer by layer; engine/models/alexnet.hpp builds it.

#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

/// AlexNet for CIFAR-10 in 22 layers: the worked example that pipeline tutorials partition.
/// `image_size`: the side that the 32x32 images are enlarged to; 63 at least.
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
