#pragma once

// The safetensors format: the length of the header (eight bytes, little-endian), a JSON header with
// the type, shape and place of each tensor, and the numbers of all tensors without gaps.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::exec {

struct TensorShape {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes;
  friend bool operator==(const TensorShape&, const TensorShape&) = default;
};

std::int64_t bytes_of(const TensorShape& tensor);

/// Returns the bytes before the tensors' numbers, which must follow in the same order. Their length
/// is a multiple of eight. Throws InputError for a type that the format does not have.
std::string safetensors_header(const std::vector<TensorShape>& tensors);

/// A tensor's place in a file: bytes [begin, end).
struct StoredPlace {
  TensorShape shape;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Returns the places from the header, in the order of the numbers, without reading the numbers.
/// Throws InputError as `parse_safetensors` does.
std::vector<StoredPlace> safetensors_places(std::string_view bytes, const std::string& file);

struct StoredValue {
  std::string name;
  at::Tensor value;
};

/// Returns the tensors in the order of their numbers. Throws InputError that names `file` and what
/// is wrong with `bytes`.
std::vector<StoredValue> parse_safetensors(std::string_view bytes, const std::string& file);

}  // namespace pipewright::exec
