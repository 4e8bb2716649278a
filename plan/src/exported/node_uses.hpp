#pragma once

// Lists the tensors that an operator of an exported graph reads, creates and modifies.

#include <vector>

#include "pipewright/plan/exported/exported_program.hpp"

namespace pipewright::plan {

/// Returns the tensors that the operator reads, in the order of its arguments.
std::vector<int> used_values(const ExportedNode& node);
std::vector<int> made_values(const ExportedNode& node);
/// Returns the tensors that the operator modifies in place. By torch's naming this is the first
/// argument if the operator's name ends with "_"; batch norm in training also modifies its running
/// statistics.
std::vector<int> changed_values(const ExportedNode& node);
/// Returns true if the result may share the memory of the first argument.
bool may_be_view(const ExportedNode& node);

}  // namespace pipewright::plan
