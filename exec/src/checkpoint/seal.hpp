#pragma once

// A manifest carries its own checksum.

#include <filesystem>
#include <string>

namespace pipewright::exec {

/// A JSON object's text with one more key, the checksum of all text before it.
std::string sealed(const std::string& json_object);

/// Throws InputError unless `sealed` has made `text`, byte for byte.
void check_seal(const std::string& text, const std::filesystem::path& file);

}  // namespace pipewright::exec
