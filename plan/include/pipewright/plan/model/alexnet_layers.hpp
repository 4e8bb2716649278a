#pragma once

// AlexNet's layers in order, each with the sizes that it is made of. What is planned of them and
// what builds them are worked out from this list.

#include <string>
#include <vector>

#include "pipewright/plan/model/alexnet_model.hpp"

namespace pipewright::plan {

enum class AlexNetKind { Conv, Relu, MaxPool, AveragePool, Flatten, Dropout, Linear };

struct AlexNetLayer {
  AlexNetKind kind;
  std::string name;                 // its kind, and how many of it there are so far: "conv2"
  int in = 0;                       // channels of a convolution, features of a linear layer
  int kernel = 0;                   // side of the window that slides over the image
  int stride = 0;                   // how far the window moves at a time
  int padding = 0;                  // zeros around the image on each side
  std::vector<int> output_shape{};  // for one sample
};

/// "conv", as the layer's kind is called in a plan.
std::string to_string(AlexNetKind kind);

/// As torchvision has it; Krizhevsky, "One weird trick for parallelizing convolutional neural
/// networks", 2014.
std::vector<AlexNetLayer> alexnet_layers(const AlexNetShape& shape);

}  // namespace pipewright::plan
