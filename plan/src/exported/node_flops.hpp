#pragma once

// Counts the FLOPs of an operator of an exported graph, and describes its arguments.

#include <string>

#include "pipewright/plan/exported/exported_program.hpp"

namespace pipewright::plan {

/// Returns the FLOPs of a forward, counting a multiply-add as two. Only matrix products,
/// convolutions and attention count; all other operators return 0.
double flops_of(const ExportedProgram& program, const ExportedNode& node);

/// Formats an argument without its tensors, such as "dim=-1". Two calls with equal texts compute
/// the same from equal tensors.
std::string words_of(const OperatorArgument& argument);

}  // namespace pipewright::plan
