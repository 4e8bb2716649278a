#pragma once

// Names of the element types of tensors.

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <string_view>

namespace pipewright::exec {

/// Returns the safetensors format's name, such as "BF16". Throws InputError for a type that the
/// format does not have.
std::string code_of(at::ScalarType dtype);
std::optional<at::ScalarType> dtype_of(std::string_view code);

/// Returns the name used in messages and costs, such as "bfloat16".
std::string word_of(at::ScalarType dtype);
/// Returns the type with this name. Throws InputError if none exists.
at::ScalarType type_named(const std::string& word);

}  // namespace pipewright::exec
