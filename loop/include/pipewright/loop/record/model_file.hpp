#pragma once

// Models in files.

#include <string>

#include "pipewright/plan/model/model.hpp"

namespace pipewright::loop {

/// A model file, or a scenario that names one.
plan::Model read_model(const std::string& file);

}  // namespace pipewright::loop
