#pragma once

// A file of tokens, mapped into memory.

#include <filesystem>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

struct TokenFile {
  at::Tensor tokens;               // one dimension, of an integer type
  std::vector<std::int64_t> ends;  // of the documents; empty if the file does not say
};

/// Maps a file of tokens. They have two bytes, the lower first, or four if the vocabulary is larger
/// than 65,536. If an .idx file exists next to a .bin, it decides the format (Megatron-LM's indexed
/// dataset, version 1: the types of tokens, the lengths of sequences, and where documents begin).
/// Throws InputError when the files cannot be read, do not match, or have a token outside the
/// vocabulary; only some pages of large files are checked for such tokens.
TokenFile map_tokens(const std::filesystem::path& file, int vocabulary);

}  // namespace pipewright::exec
