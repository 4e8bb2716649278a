#pragma once

// The checksum that a manifest carries.

#include <filesystem>
#include <string>

namespace pipewright::exec {

/// Returns a JSON object's text with one more key, the checksum of all text before it.
std::string sealed(const std::string& json_object);

/// Throws InputError unless `text` is, byte for byte, an output of `sealed`.
void check_seal(const std::string& text, const std::filesystem::path& file);

}  // namespace pipewright::exec
