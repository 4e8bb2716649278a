#pragma once

// A PipelineModule in words, for those who look.

#include <string>

#include "pipewright/engine/pipeline_module.hpp"

namespace pipewright::engine {

/// A line for each stage: its layers, and how many numbers it trains, which are counted without
/// having them (without_memory.hpp).
std::string to_string(const PipelineModule& module);

}  // namespace pipewright::engine
