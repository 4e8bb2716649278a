#pragma once

// What LibTorch's allocator would reserve, and whether it fits, in words: the same wherever it is
// said.

#include <string>
#include <vector>

#include "pipewright/models/allocator/memory_verdict.hpp"

namespace pipewright::cli {

/// "fits", "fits, but: only 3.20 GiB are left …".
std::string verdict_words(const models::MemoryVerdict& verdict);
/// What each rank of a pipeline allocates and reserves; empty where none is told.
std::string reserved_table(const std::vector<models::ReservedMemory>& ranks);

}  // namespace pipewright::cli
