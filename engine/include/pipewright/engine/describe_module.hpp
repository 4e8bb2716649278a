#pragma once

// A human-readable description of a PipelineModule.

#include <string>

#include "pipewright/engine/pipeline_module.hpp"

namespace pipewright::engine {

/// Returns one line per stage, with its layers and its number of trainable parameters, which are
/// counted without allocating them (without_memory.hpp).
std::string to_string(const PipelineModule& module);

}  // namespace pipewright::engine
