#pragma once

// Text to train on, byte by byte.

#include <filesystem>
#include <memory>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Random windows of `sequence` bytes of a file; the target is the window one byte later. Both are
/// int64 [microbatch_size, sequence]. Throws InputError when the file cannot be read or is too
/// short.
std::unique_ptr<Dataset> open_text(const std::filesystem::path& file, int sequence,
                                   const BatchShape& shape);

}  // namespace pipewright::exec
