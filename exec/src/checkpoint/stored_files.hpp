#pragma once

// The files of a checkpoint, read and compared with what its manifest says of them.

#include <filesystem>

#include "checkpoint/manifest.hpp"
#include "pipewright/exec/checkpoint/safetensors.hpp"

namespace pipewright::exec {

/// Throws InputError unless all files are in `folder`, in full size.
void require_files(const std::filesystem::path& folder, const Manifest& manifest);

/// Throws InputError unless the contents of a file have its checksum.
void verify_file(const std::filesystem::path& folder, const StoredFile& stored);

/// The tensors of a file, after that check.
std::vector<StoredValue> read_stored(const std::filesystem::path& folder, const StoredFile& stored);

}  // namespace pipewright::exec
