#pragma once

// What one process adds to a checkpoint, as files.

#include <filesystem>

#include "checkpoint/manifest.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"

namespace pipewright::exec {

/// Writes the snapshot's files into `folder` and returns what they hold. When one fails, all that
/// were made here are removed before the exception goes on.
Manifest write_part(const std::filesystem::path& folder, const Snapshot& snapshot,
                    const CheckpointOptions& options);

}  // namespace pipewright::exec
