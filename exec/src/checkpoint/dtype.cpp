#include "pipewright/exec/checkpoint/dtype.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

struct Dtype {
  at::ScalarType type;
  const char* code;
  const char* word;
};

constexpr std::array dtypes{
    Dtype{at::kBool, "BOOL", "bool"},
    Dtype{at::kByte, "U8", "uint8"},
    Dtype{at::kChar, "I8", "int8"},
    Dtype{at::kFloat8_e4m3fn, "F8_E4M3", "float8_e4m3"},
    Dtype{at::kFloat8_e5m2, "F8_E5M2", "float8_e5m2"},
    Dtype{at::kUInt16, "U16", "uint16"},
    Dtype{at::kShort, "I16", "int16"},
    Dtype{at::kHalf, "F16", "float16"},
    Dtype{at::kBFloat16, "BF16", "bfloat16"},
    Dtype{at::kUInt32, "U32", "uint32"},
    Dtype{at::kInt, "I32", "int32"},
    Dtype{at::kFloat, "F32", "float32"},
    Dtype{at::kUInt64, "U64", "uint64"},
    Dtype{at::kLong, "I64", "int64"},
    Dtype{at::kDouble, "F64", "float64"},
};

const Dtype* find_dtype(at::ScalarType type) {
  const auto* const found = std::find_if(dtypes.begin(), dtypes.end(),
                                         [&](const Dtype& dtype) { return dtype.type == type; });
  return found == dtypes.end() ? nullptr : found;
}

}  // namespace

std::string code_of(at::ScalarType dtype) {
  if (const Dtype* const found = find_dtype(dtype))
    return found->code;
  throw plan::InputError(fmt::format("tensors of type {} cannot be stored in a safetensors file",
                                     c10::toString(dtype)));
}

std::optional<at::ScalarType> dtype_of(std::string_view code) {
  for (const Dtype& dtype : dtypes)
    if (dtype.code == code)
      return dtype.type;
  return {};
}

std::string word_of(at::ScalarType dtype) {
  const Dtype* const found = find_dtype(dtype);
  return found != nullptr ? found->word : c10::toString(dtype);
}

at::ScalarType type_named(const std::string& word) {
  for (const Dtype& dtype : dtypes)
    if (dtype.word == word)
      return dtype.type;
  throw plan::InputError(fmt::format("tensor type {} is not supported", word));
}

}  // namespace pipewright::exec
