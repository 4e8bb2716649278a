#include "pipewright/plan/model/model.hpp"

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::plan {
namespace {

Json to_json(const Layer& layer) {
  return {{"name", layer.name},
          {"kind", layer.kind},
          {"parameters", layer.parameters},
          {"parameter_bytes", layer.parameter_bytes.value},
          {"forward_flops", layer.forward_flops},
          {"output_shape", layer.output_shape},
          {"dtype", layer.dtype},
          {"tied_key", layer.tied_key},
          {"tied_parameters", layer.tied_parameters},
          {"checkpointable", layer.checkpointable}};
}

Layer read_layer(Diagnostics& diagnostics, const std::string& pointer) {
  JsonObject object(diagnostics, pointer);
  const Layer plain;
  return {
      .name = object.text("name"),
      .kind = object.text("kind"),
      .parameters = object.big_integer("parameters", at_least(0)),
      .parameter_bytes = object.bytes("parameter_bytes"),
      .forward_flops = object.number("forward_flops", at_least(0)),
      .output_shape = object.integers("output_shape", at_least(1)),
      .dtype = object.text("dtype", plain.dtype),
      .tied_key = object.text("tied_key", plain.tied_key),
      .tied_parameters = object.big_integer("tied_parameters", at_least(0), plain.tied_parameters),
      .checkpointable = object.flag("checkpointable", plain.checkpointable)};
}

Model read_model(JsonObject& root) {
  Model model;
  model.name = root.text("name");
  for (const std::string& pointer : root.elements("layers"))
    model.layers.push_back(read_layer(root.diagnostics(), pointer));
  if (const Json* layers = root.find("layers"); layers != nullptr && *layers == Json::array())
    root.error("layers", "at least one layer is needed");
  return model;
}

}  // namespace

Json to_json(const Model& model) {
  Json layers = Json::array();
  for (const Layer& layer : model.layers)
    layers.push_back(to_json(layer));
  return {{"format", "pipewright/model/1"}, {"name", model.name}, {"layers", std::move(layers)}};
}

Model model_from_json(const JsonDocument& document) {
  return read_document<Model>(document, "pipewright/model/1", read_model);
}

}  // namespace pipewright::plan
