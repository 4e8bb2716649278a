#pragma once

// A checkpoint gets its name last, so that whatever has a name is whole.

#include <filesystem>

#include "checkpoint/manifest.hpp"

namespace pipewright::exec {

/// Gives the unfinished checkpoint of `manifest` its manifest and its final name, in `folder`.
/// Throws std::runtime_error when it is not whole or the disk refuses; nothing has its name then.
void publish(const std::filesystem::path& folder, const Manifest& manifest, int parts);

}  // namespace pipewright::exec
