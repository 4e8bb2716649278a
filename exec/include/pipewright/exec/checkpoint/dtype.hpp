#pragma once

// Names of the types of numbers that tensors have.

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <string_view>

namespace pipewright::exec {

/// As the safetensors format writes it, such as "BF16". Throws InputError for a type that it does
/// not have.
std::string code_of(at::ScalarType dtype);
std::optional<at::ScalarType> dtype_of(std::string_view code);

/// As in messages and costs, such as "bfloat16".
std::string word_of(at::ScalarType dtype);
/// The type that is called so. Throws InputError where none is.
at::ScalarType type_named(const std::string& word);

}  // namespace pipewright::exec
