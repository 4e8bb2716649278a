#pragma once

// A checkpoint of several processes becomes one: part 0 waits for what the others have written.

#include <filesystem>
#include <functional>

#include "checkpoint/manifest.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"

namespace pipewright::exec {

/// The manifest of all parts together, from part 0's own and the documents that the others leave in
/// `folder`. Waits for them, until they are `given_up`. Throws std::runtime_error when one has
/// failed, stays away for longer than the timeout, or when together they are not a whole
/// checkpoint.
Manifest collect_parts(const std::filesystem::path& folder, const Manifest& own,
                       const CheckpointOptions& options, const std::function<bool()>& given_up);

}  // namespace pipewright::exec
