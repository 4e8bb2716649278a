#pragma once

// A Model is what planning needs to know of a network before anything runs: its layers in order.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

struct Layer {
  std::string name;
  std::string kind;               // such as "transformer-block"
  std::int64_t parameters = 0;    // count
  Bytes parameter_bytes;          //
  double forward_flops = 0;       // of one sample; a multiply-add counts two
  std::vector<int> output_shape;  // of one sample, without the batch dimension
  std::string dtype = "float32";  // of the output
  std::string tied_key;           // layers with the same key share a weight; empty: none
  bool checkpointable = false;    // may be recomputed in the backward
  friend bool operator==(const Layer&, const Layer&) = default;
};

struct Model {
  std::string name;
  std::vector<Layer> layers;
  friend bool operator==(const Model&, const Model&) = default;
};

/// A GPT of pre-norm blocks over learned token and position embeddings; layer 0 is the embedding,
/// the last layer is norm and head.
struct GptShape {
  int blocks = 6;
  int hidden = 256;
  int heads = 4;
  int sequence = 128;    // tokens of one sample
  int vocabulary = 256;  // 256: the bytes of a text
  friend bool operator==(const GptShape&, const GptShape&) = default;
};
Model gpt_model(const GptShape& shape);

/// AlexNet for CIFAR-10 in 22 layers: the worked example that pipeline tutorials partition.
/// `image_size`: the side that the 32x32 images are enlarged to; 63 at least.
struct AlexNetShape {
  int classes = 10;
  int image_size = 224;
  friend bool operator==(const AlexNetShape&, const AlexNetShape&) = default;
};
Model alexnet_model(const AlexNetShape& shape);

Json to_json(const Model& model);
Model model_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
