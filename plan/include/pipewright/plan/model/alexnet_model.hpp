#pragma once

#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {

/// AlexNet for CIFAR-10 in 22 layers: the worked example that pipeline tutorials partition.
/// `image_size`: the side that the 32x32 images are enlarged to; 63 at least.
struct AlexNetShape {
  int classes = 10;
  int image_size = 224;
  friend bool operator==(const AlexNetShape&, const AlexNetShape&) = default;
};
Model alexnet_model(const AlexNetShape& shape);

}  // namespace pipewright::plan
