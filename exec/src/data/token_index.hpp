#pragma once

// The .idx file that Megatron-LM writes next to a .bin file of tokens.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

struct TokenIndex {
  at::ScalarType type = at::kInt;
  std::int64_t tokens = 0;
  std::vector<std::int64_t> ends;  // of documents, ascending
};

/// Throws InputError that names `file` and what is wrong with `bytes`.
TokenIndex parse_token_index(std::string_view bytes, const std::string& file);

}  // namespace pipewright::exec
