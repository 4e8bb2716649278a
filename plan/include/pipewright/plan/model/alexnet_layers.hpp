#pragma once

// AlexNet's layers in order, with their sizes. Both the planned model and the built one are derived
// from this list.

#include <string>
#include <vector>

#include "pipewright/plan/model/alexnet_model.hpp"

namespace pipewright::plan {

enum class AlexNetKind { Conv, Relu, MaxPool, AveragePool, Flatten, Dropout, Linear };

struct AlexNetLayer {
  AlexNetKind kind;
  std::string name;                 // its kind and a running number within the kind: "conv2"
  int in = 0;                       // channels of a convolution, features of a linear layer
  int kernel = 0;                   // side of the sliding window
  int stride = 0;                   // step of the sliding window
  int padding = 0;                  // zeros around the image on each side
  std::vector<int> output_shape{};  // for one sample
};

/// Returns the name of the kind in a plan, such as "conv".
std::string to_string(AlexNetKind kind);

/// Returns the layers as in torchvision (Krizhevsky, "One weird trick for parallelizing
/// convolutional neural networks", 2014).
std::vector<AlexNetLayer> alexnet_layers(const AlexNetShape& shape);

}  // namespace pipewright::plan
