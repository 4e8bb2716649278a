#pragma once

// What LibTorch's allocator would reserve, and whether it fits: the same for people and for
// programs wherever it is said.

#include <string>
#include <vector>

#include "pipewright/plan/allocator/memory_verdict.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::cli {

/// "fits", "fits, but: only 3.20 GiB are left …".
std::string verdict_words(const plan::MemoryVerdict& verdict);
/// `allocated_bytes`, `reserved_bytes`, `fragmentation_bytes`, `left_bytes`, `verdict` and, unless
/// it fits as it is, `reason`; or `refused`.
plan::Json to_json(const plan::ReservedMemory& reserved);
/// What each rank of a pipeline allocates and reserves; empty where none is told.
std::string reserved_table(const std::vector<plan::ReservedMemory>& ranks);

}  // namespace pipewright::cli
