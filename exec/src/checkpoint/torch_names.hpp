#pragma once

// The type names that any pickle written by torch may contain.

#include <set>
#include <string>

namespace pipewright::exec {

/// Returns types and containers that are read as their names only, as "module name".
const std::set<std::string>& plain_torch_names();

}  // namespace pipewright::exec
