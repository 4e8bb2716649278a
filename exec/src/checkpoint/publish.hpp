#pragma once

// Gives a checkpoint its final name as the last operation, so that every checkpoint with such a
// name is complete.

#include <filesystem>

#include "checkpoint/manifest.hpp"

namespace pipewright::exec {

/// Gives the unfinished checkpoint of `manifest` its manifest and its final name, in `folder`.
/// Throws std::runtime_error when it is incomplete or the disk fails; then no folder gets that
/// name.
void publish(const std::filesystem::path& folder, const Manifest& manifest, int parts);

}  // namespace pipewright::exec
