#include "pipewright/plan/model/model_shape.hpp"

#include <fmt/format.h>

#include <functional>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"

namespace pipewright::plan {

ModelShape::ModelShape() : ModelShape(model_kinds().front().get().plain()) {}

const std::string& ModelShape::kind() const { return descriptor_->kind; }

void ModelShape::throw_other_kind(const ModelDescriptor& wanted) const {
  throw InputError(fmt::format("the model is of kind {}, not {}", kind(), wanted.kind));
}

bool operator==(const ModelShape& a, const ModelShape& b) {
  return a.descriptor_ == b.descriptor_ && a.descriptor_->equal(a, b);
}

double bytes_of(const SampleTensor& tensor) {
  const double value_bytes = tensor.is_index ? 8 : 4;
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), value_bytes,
                         std::multiplies<>());
}

Model model_of(const ModelShape& shape) { return shape.descriptor().layers(shape); }

Sample sample_of(const ModelShape& shape) { return shape.descriptor().sample(shape); }

LayerEstimate estimate_of(const ModelShape& shape, const Layer& layer) {
  return shape.descriptor().estimate(shape, layer);
}

Json to_json(const ModelShape& shape) {
  Json json = shape.descriptor().fields(shape);
  json["kind"] = shape.kind();
  return json;
}

}  // namespace pipewright::plan
