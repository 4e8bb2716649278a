#pragma once

// A file's bytes, read when they are looked at.

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string_view>

namespace pipewright::exec {

/// As a tensor of bytes, which keeps the file mapped. Throws InputError that names the file when it
/// cannot be read or is empty.
at::Tensor mapped(const std::filesystem::path& file);

/// As long as the tensor lives.
std::string_view text_of(const at::Tensor& bytes);

}  // namespace pipewright::exec
