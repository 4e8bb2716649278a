#pragma once

// Text as training data, byte by byte.

#include <filesystem>
#include <memory>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Opens a file as random windows of `sequence` bytes; the target is the window one byte later.
/// Both are int64 [microbatch_size, sequence]. Throws InputError if the file cannot be read or is
/// too short.
std::unique_ptr<Dataset> open_text(const std::filesystem::path& file, int sequence,
                                   const BatchShape& shape);

}  // namespace pipewright::exec
