#pragma once

// A Model is what planning needs to know of a network before anything runs: its layers in order.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

struct Layer {
  std::string name;
  std::string kind;                  // such as "transformer-block"
  std::int64_t parameters = 0;       // count
  Bytes parameter_bytes;             //
  double forward_flops = 0;          // for one sample; a multiply-add counts as two
  std::vector<int> output_shape;     // for one sample, without the batch dimension
  std::string dtype = "float32";     // the output's type
  std::string tied_key;              // layers with the same key share a weight; empty: not tied
  std::int64_t tied_parameters = 0;  // number of parameters that are shared
  bool checkpointable = false;       // can be recomputed in the backward
  friend bool operator==(const Layer&, const Layer&) = default;
};

struct Model {
  std::string name;
  std::vector<Layer> layers;
  friend bool operator==(const Model&, const Model&) = default;
};

Json to_json(const Model& model);
Model model_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
