#pragma once

// A file of tokens, mapped into memory.

#include <filesystem>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

struct TokenFile {
  at::Tensor tokens;               // one dimension, of an integer type
  std::vector<std::int64_t> ends;  // of the documents; empty: the file does not say
};

/// Tokens of two bytes, the lower first, or four where the vocabulary is larger than 65,536; or,
/// where an .idx lies beside a .bin, what that says (Megatron-LM's indexed dataset, version 1: the
/// types of tokens, the lengths of sequences, and where documents begin). Throws InputError when
/// they cannot be read, do not go together, or have a token that is none of the vocabulary: of
/// large files some pages are looked through.
TokenFile map_tokens(const std::filesystem::path& file, int vocabulary);

}  // namespace pipewright::exec
