#pragma once

// Merges the parts of a checkpoint that several processes write: part 0 waits for the other parts.

#include <filesystem>
#include <functional>

#include "checkpoint/manifest.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"

namespace pipewright::exec {

/// Returns the manifest of all parts, merged from part 0's `own` and the documents that the other
/// parts leave in `folder`. Waits for these until `given_up` returns true. Throws
/// std::runtime_error when a part has failed, does not arrive within the timeout, or when the parts
/// do not form a complete checkpoint.
Manifest collect_parts(const std::filesystem::path& folder, const Manifest& own,
                       const CheckpointOptions& options, const std::function<bool()>& given_up);

}  // namespace pipewright::exec
