#pragma once

// Helper for a model's declaration. Its file in src/model defines `visit_fields` for its shape and
// the functions named below, and ends with
//
//   template <>
//   const ModelDescriptor& descriptor_of<GptShape>() {
//     static const ModelDescriptor gpt = declare_model<GptShape>({.meaning = …});
//     return gpt;
//   }
//
// Only the last three members may be omitted; otherwise the declaration does not compile.

#include <fmt/format.h>

#include "pipewright/plan/model/model_descriptor.hpp"

namespace pipewright::plan {

template <class Shape>
struct ModelDeclaration {
  const char* meaning;
  DataKind data;
  const char* unit;
  Model (*layers)(const Shape&);
  Sample (*sample)(const Shape&);
  LayerEstimate (*estimate)(const Shape&, const Layer&);
  /// Records an error for a shape that cannot be built, in addition to the checks of single fields.
  void (*check)(const Shape&, JsonObject&) = nullptr;
  /// Returns why the layers cannot be partitioned into `parts` parts, and the nearest numbers that
  /// work. If omitted, no layer can be partitioned.
  std::vector<std::string> (*faults_of_cut)(const Shape&, int parts) = nullptr;
  /// Returns the fields whose values cannot be trained. If omitted, every shape can be trained.
  std::vector<std::string> (*only_predicted)(const Shape&) = nullptr;
};

template <class Shape>
std::vector<std::string> faults_of_cut(const Shape& shape, int parts,
                                       const ModelDeclaration<Shape>& declared) {
  if (declared.faults_of_cut != nullptr)
    return declared.faults_of_cut(shape, parts);
  if (parts == 1)
    return {};
  return {fmt::format("no layer of the model {} can be divided into {} parts; 1 would do",
                      Shape::kind, parts)};
}

template <class Shape>
Json model_schema(const char* meaning) {
  Json object = object_schema(meaning);
  object["properties"]["kind"] = {{"const", Shape::kind}};
  object["required"].push_back("kind");
  add_fields<Shape>(object);
  return object;
}

template <class Shape>
std::vector<std::string> keys_of() {
  std::vector<std::string> keys;
  const Shape plain{};
  visit_fields(plain, [&](const char* key, const auto&...) { keys.emplace_back(key); });
  return keys;
}

/// Returns nothing if a value was rejected; the fallback that replaces it is not checked.
template <class Shape>
std::optional<ModelShape> read_shape(JsonObject& object, void (*check)(const Shape&, JsonObject&)) {
  const auto shape = read_fields<Shape>(object);
  if (!all_taken(object, shape))
    return {};
  if (check != nullptr)
    check(shape, object);
  return shape;
}

template <class Shape>
ModelDescriptor declare_model(const ModelDeclaration<Shape>& declared) {
  return {
      .kind = Shape::kind,
      .meaning = declared.meaning,
      .data = declared.data,
      .unit = declared.unit,
      .keys = keys_of<Shape>(),
      .plain = [] { return ModelShape(Shape{}); },
      .equal = [](const ModelShape& a,
                  const ModelShape& b) { return a.as<Shape>() == b.as<Shape>(); },
      .layers = [declared](const ModelShape& shape) { return declared.layers(shape.as<Shape>()); },
      .sample = [declared](const ModelShape& shape) { return declared.sample(shape.as<Shape>()); },
      .estimate = [declared](
                      const ModelShape& shape,
                      const Layer& layer) { return declared.estimate(shape.as<Shape>(), layer); },
      .read = [declared](JsonObject& object) { return read_shape<Shape>(object, declared.check); },
      .faults_of_cut = [declared](
                           const ModelShape& shape,
                           int parts) { return faults_of_cut(shape.as<Shape>(), parts, declared); },
      .only_predicted =
          [declared](const ModelShape& shape) {
            return declared.only_predicted == nullptr ? std::vector<std::string>()
                                                      : declared.only_predicted(shape.as<Shape>());
          },
      .fields = [](const ModelShape& shape) { return fields_json(shape.as<Shape>()); },
      .schema = [declared] { return model_schema<Shape>(declared.meaning); }};
}

}  // namespace pipewright::plan
