#pragma once

// A path that a scenario has as a model's, which is meant from the scenario's own folder.

#include <string>

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::plan {

/// Absolute, without "..". Nothing where it is empty: then the object has an error.
std::optional<std::string> path_beside(JsonObject& object, const std::string& path);

}  // namespace pipewright::plan
