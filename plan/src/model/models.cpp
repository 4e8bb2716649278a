#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/catalog.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"

namespace pipewright::plan {

namespace {

std::vector<std::reference_wrapper<const ModelDescriptor>>& known_kinds() {
#define CALL(Shape) descriptor_of<Shape>(),
  static std::vector<std::reference_wrapper<const ModelDescriptor>> all{
      PIPEWRIGHT_MODELS(CALL) PIPEWRIGHT_PREDICTED_MODELS(CALL)};
#undef CALL
  return all;
}

}  // namespace

const std::vector<std::reference_wrapper<const ModelDescriptor>>& model_kinds() {
  return known_kinds();
}

void add_model_kind(const ModelDescriptor& model) {
  for (const ModelDescriptor& known : known_kinds())
    if (known.kind == model.kind)
      throw InputError(fmt::format(
          "a model of the kind \"{}\" is known already: another name is needed", model.kind));
  known_kinds().emplace_back(model);
}

std::vector<DataKind> data_kinds() {
  std::vector<DataKind> list;
  for (const ModelDescriptor& model : model_kinds())
    if (std::none_of(list.begin(), list.end(),
                     [&](const DataKind& kind) { return kind.name == model.data.name; }))
      list.push_back(model.data);
  return list;
}

std::optional<ModelShape> read_model_shape(JsonObject& object) {
  std::vector<std::string> kinds;
  for (const ModelDescriptor& model : model_kinds())
    kinds.push_back(model.kind);
  const std::string kind = object.choice("kind", kinds);
  if (object.has("kind") && taken(object, "kind", kind))
    for (const ModelDescriptor& model : model_kinds())
      if (model.kind == kind)
        return model.read(object);
  // Without a valid kind, the expected keys are unknown, so the keys of all models are accepted.
  for (const ModelDescriptor& model : model_kinds())
    for (const std::string& key : model.keys)
      object.allow(key);
  return {};
}

}  // namespace pipewright::plan
