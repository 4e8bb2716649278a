#pragma once

// What an operator of an exported graph computes.

#include <string>

#include "pipewright/plan/exported/exported_program.hpp"

namespace pipewright::plan {

/// Of a forward, a multiply-add counted as two: those of products, convolutions and attention; 0
/// of all others.
double flops_of(const ExportedProgram& program, const ExportedNode& node);

/// "dim=-1", without the tensors: two calls with the same words do the same with equal tensors.
std::string words_of(const OperatorArgument& argument);

}  // namespace pipewright::plan
