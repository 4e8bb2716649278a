#pragma once

// A model whose field `path` is a folder, meant from the scenario's own.

#include <optional>
#include <string>
#include <utility>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/declare_model.hpp"

namespace pipewright::plan {

/// Absolute, without "..". Nothing where it is empty: then the object has an error.
std::optional<std::string> path_beside(JsonObject& object, const std::string& path);

/// The shape as `load` makes it of its fields, the path absolute. Nothing where a field is wrong or
/// the folder is refused (InputError): then the object has an error.
template <class Shape, class Load>
std::optional<Shape> read_shape_of_folder(JsonObject& object, const Load& load) {
  auto shape = read_fields<Shape>(object);
  if (!all_taken(object, shape))
    return {};
  const auto path = path_beside(object, shape.path);
  if (!path)
    return {};
  shape.path = *path;
  try {
    return load(std::move(shape));
  } catch (const InputError& error) {
    object.diagnostics().add_lines(object.pointer() + "/path", error.what());
    return {};
  }
}

}  // namespace pipewright::plan
