#pragma once

// Which tensors an operator of an exported graph uses, makes and changes.

#include <vector>

#include "pipewright/plan/exported/exported_program.hpp"

namespace pipewright::plan {

/// In the order of its arguments.
std::vector<int> used_values(const ExportedNode& node);
std::vector<int> made_values(const ExportedNode& node);
/// Those that it writes into: by the naming of torch, the first argument of an operator whose name
/// ends with "_", and the running sums of batch norms in training.
std::vector<int> changed_values(const ExportedNode& node);
/// Whether what it makes may lie in the memory of its first argument.
bool may_be_view(const ExportedNode& node);

}  // namespace pipewright::plan
