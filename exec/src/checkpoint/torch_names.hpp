#pragma once

// What pickles of torch may name beside what they are about.

#include <set>
#include <string>

namespace pipewright::exec {

/// Types and containers that stand for themselves, as "module name".
const std::set<std::string>& plain_torch_names();

}  // namespace pipewright::exec
