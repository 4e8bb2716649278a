#pragma once

// Helpers for models whose field `path` is a folder, relative to the scenario's folder.

#include <optional>
#include <string>
#include <utility>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/declare_model.hpp"

namespace pipewright::plan {

/// Returns the path as absolute and without "..". Returns nothing and records an error if it is
/// empty.
std::optional<std::string> path_beside(JsonObject& object, const std::string& path);

/// Returns the shape that `load` makes of its fields, with an absolute path. Returns nothing and
/// records an error if a field is wrong or `load` rejects the folder with InputError.
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
