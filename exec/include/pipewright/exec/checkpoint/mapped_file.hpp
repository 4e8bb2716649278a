#pragma once

// Maps files into memory, so that bytes are read on first access.

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string_view>

namespace pipewright::exec {

/// Returns the file as a tensor of bytes, which stays mapped as long as the tensor lives. Throws
/// InputError that names the file if it cannot be read, is empty or is a Git LFS pointer.
at::Tensor mapped(const std::filesystem::path& file);

/// Returns the bytes as text, valid as long as the tensor lives.
std::string_view text_of(const at::Tensor& bytes);

}  // namespace pipewright::exec
