#pragma once

// Writes the files that one process adds to a checkpoint.

#include <filesystem>

#include "checkpoint/manifest.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"

namespace pipewright::exec {

/// Writes the snapshot's files into `folder` and returns their manifest. When one fails, removes
/// all files that it has written before the exception propagates.
Manifest write_part(const std::filesystem::path& folder, const Snapshot& snapshot,
                    const CheckpointOptions& options);

}  // namespace pipewright::exec
