#pragma once

// The choice of a model and its sizes: a struct such as GptShape, stored in the one type
// ModelShape, so that all other code uses the model's declaration (declare_model.hpp).

#include <any>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {

struct ModelDescriptor;

/// A shape of a model. `static constexpr auto kind = "gpt"` is its name in scenarios.
template <class Shape>
concept NamesKind = requires {
  typename std::bool_constant<(Shape::kind != nullptr)>;
};

/// Returns the declaration of the model with this shape, defined at the end of the model's file in
/// src/model. A shape without one does not link.
template <class Shape>
const ModelDescriptor& descriptor_of();

class ModelShape {
 public:
  /// Makes the default shape of the first model.
  ModelShape();
  template <NamesKind Shape>
  ModelShape(Shape shape)  // NOLINT(google-explicit-constructor): a shape is a ModelShape
      : descriptor_(&descriptor_of<Shape>()), shape_(std::move(shape)) {}

  const ModelDescriptor& descriptor() const { return *descriptor_; }
  const std::string& kind() const;

  /// Returns the shape if it is of that type, else null.
  template <NamesKind Shape>
  Shape* find() {
    return std::any_cast<Shape>(&shape_);
  }
  template <NamesKind Shape>
  const Shape* find() const {
    return std::any_cast<Shape>(&shape_);
  }
  /// Returns the shape, which must be of that type. Throws InputError that names both kinds.
  template <NamesKind Shape>
  Shape& as() {
    if (find<Shape>() == nullptr)
      throw_other_kind(descriptor_of<Shape>());
    return *find<Shape>();
  }
  template <NamesKind Shape>
  const Shape& as() const {
    if (find<Shape>() == nullptr)
      throw_other_kind(descriptor_of<Shape>());
    return *find<Shape>();
  }

  friend bool operator==(const ModelShape& a, const ModelShape& b);

 private:
  [[noreturn]] void throw_other_kind(const ModelDescriptor& wanted) const;

  const ModelDescriptor* descriptor_;
  std::any shape_;
};

/// A tensor of one sample, without the batch dimension.
struct SampleTensor {
  std::vector<int> shape;
  bool is_index = false;  // int64, such as tokens and labels; float32 otherwise
  friend bool operator==(const SampleTensor&, const SampleTensor&) = default;
};
double bytes_of(const SampleTensor& tensor);

/// The data of one sample.
struct Sample {
  int units = 1;  // number of tokens, images or other units
  SampleTensor input;
  SampleTensor target;
};

/// Properties of a layer that estimates need besides its `Layer`, in values per sample.
struct LayerEstimate {
  double kept = 0;             // saved for the backward, without the input
  double attention_kept = 0;   // part of that which selective recomputation drops (attention)
  double attention_flops = 0;  // to recompute that part
};

Model model_of(const ModelShape& shape);
Sample sample_of(const ModelShape& shape);
/// Returns the estimate of a layer, which must be one of `model_of(shape)`.
LayerEstimate estimate_of(const ModelShape& shape, const Layer& layer);

Json to_json(const ModelShape& shape);

}  // namespace pipewright::plan
