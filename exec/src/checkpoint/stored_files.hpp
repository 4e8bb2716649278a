#pragma once

// Reads the files of a checkpoint and compares them with its manifest.

#include <filesystem>

#include "checkpoint/manifest.hpp"
#include "pipewright/exec/checkpoint/safetensors.hpp"

namespace pipewright::exec {

/// Throws InputError unless all files are in `folder` and have their full size.
void require_files(const std::filesystem::path& folder, const Manifest& manifest);

/// Throws InputError unless the contents of a file have the checksum in the manifest.
void verify_file(const std::filesystem::path& folder, const StoredFile& stored);

/// Reads the tensors of a file, after the same check.
std::vector<StoredValue> read_stored(const std::filesystem::path& folder, const StoredFile& stored);

}  // namespace pipewright::exec
