#pragma once

// Which model, and how large: a struct such as GptShape, held by value as the one type ModelShape,
// so that all else goes by what the model declares of itself (declare_model.hpp).

#include <any>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {

struct ModelDescriptor;

/// The shape of a model: `static constexpr auto kind = "gpt"` is how a scenario names it.
template <class Shape>
concept NamesKind = requires {
  typename std::bool_constant<(Shape::kind != nullptr)>;
};

/// What the model with this shape declares of itself; each shape has its own, at the end of its
/// file in src/model. A shape without one does not link.
template <class Shape>
const ModelDescriptor& descriptor_of();

class ModelShape {
 public:
  /// The plain shape of the first model.
  ModelShape();
  template <NamesKind Shape>
  ModelShape(Shape shape)  // NOLINT(google-explicit-constructor): a shape is a ModelShape
      : descriptor_(&descriptor_of<Shape>()), shape_(std::move(shape)) {}

  const ModelDescriptor& descriptor() const { return *descriptor_; }
  const std::string& kind() const;

  /// The shape, where it is of that type; null otherwise.
  template <NamesKind Shape>
  Shape* find() {
    return std::any_cast<Shape>(&shape_);
  }
  template <NamesKind Shape>
  const Shape* find() const {
    return std::any_cast<Shape>(&shape_);
  }
  /// The shape, which must be of that type. Throws InputError that names both kinds.
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

/// What a model takes of its data at a time.
struct Sample {
  int units = 1;  // how many tokens, images or what else the model counts
  SampleTensor input;
  SampleTensor target;
};

/// What a layer does beside its `Layer`: values of one sample, for estimates before it is measured.
struct LayerEstimate {
  double kept = 0;             // for the backward, beside the input
  double attention_kept = 0;   // the attention's part of that, which selective recomputation drops
  double attention_flops = 0;  // what it takes to compute that part again
};

Model model_of(const ModelShape& shape);
Sample sample_of(const ModelShape& shape);
/// `layer` is one of `model_of(shape)`.
LayerEstimate estimate_of(const ModelShape& shape, const Layer& layer);

Json to_json(const ModelShape& shape);

}  // namespace pipewright::plan
