#include "pipewright/plan/model/measured_model.hpp"

#include <algorithm>

#include "pipewright/plan/model/declare_model.hpp"
#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {

template <MaybeConst<MeasuredLayer> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("name", s.name, needed(any()), "Name of the model, as in its costs.");
  visit("parameter_bytes", s.parameters, needed(any()), "Bytes of the layer's parameters.");
}

template <MaybeConst<MeasuredShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("layers", s.layers, needed(any()), "Name and parameter_bytes of each layer, in order.");
}

namespace {

constexpr int bytes_of_float = 4;

Model layers_of_measured(const MeasuredShape& shape) {
  Model model{.name = MeasuredShape::kind, .layers = {}};
  for (const MeasuredLayer& from : shape.layers) {
    Layer layer;
    layer.name = from.name;
    layer.kind = "measured " + from.name;
    layer.parameter_bytes = from.parameters;
    layer.parameters = from.parameters.value / bytes_of_float;
    // A guess for models without costs: each parameter takes part in one multiply-add.
    layer.forward_flops = 2.0 * static_cast<double>(std::max<std::int64_t>(1, layer.parameters));
    layer.output_shape = {1};
    layer.checkpointable = true;
    model.layers.push_back(layer);
  }
  return model;
}

void check_measured(const MeasuredShape& shape, JsonObject& object) {
  if (shape.layers.empty())
    object.error("layers", "at least one layer is needed");
}

}  // namespace

template <>
const ModelDescriptor& descriptor_of<MeasuredShape>() {
  static const ModelDescriptor measured = declare_model<MeasuredShape>(
      {.meaning = "Layers of another program, which are planned and predicted from their costs.",
       .data = samples_data,
       .unit = "samples",
       .layers = layers_of_measured,
       .sample = [](const MeasuredShape&) { return Sample{.input = {{1}}, .target = {{1}}}; },
       .estimate = [](const MeasuredShape&, const Layer&) { return LayerEstimate{}; },
       .check = check_measured,
       .only_predicted =
           [](const MeasuredShape&) { return std::vector<std::string>{"kind=measured"}; }});
  return measured;
}

}  // namespace pipewright::plan
