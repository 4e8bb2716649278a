#pragma once

// Reads models from files.

#include <string>

#include "pipewright/plan/model/model.hpp"

namespace pipewright::loop {

/// Reads a model file, or the model that a scenario file names.
plan::Model read_model(const std::string& file);

}  // namespace pipewright::loop
