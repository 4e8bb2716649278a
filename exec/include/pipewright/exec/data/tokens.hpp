#pragma once

// Tokenized text as training data: the token numbers of a tokenizer, one after the other.

#include <filesystem>
#include <memory>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Opens a token file, which is mapped and not copied to memory, as windows of `sequence` tokens in
/// the order of `shape`; the target is the window one token later. Both are int64 [microbatch_size,
/// sequence]. A token has two bytes, little-endian, or four if the vocabulary is larger than
/// 65,536. If there is an .idx file of Megatron-LM next to the file, that decides the size.
///
/// With packed order, inputs are the tokens and, for each token, the document of the sample that it
/// belongs to (-1: padding). The weight of a microbatch is then its number of targets.
///
/// Throws InputError if a file cannot be read, is too short, is no whole number of tokens, or has a
/// token outside the vocabulary.
std::unique_ptr<Dataset> open_tokens(const std::filesystem::path& file, int sequence,
                                     int vocabulary, const BatchShape& shape);

}  // namespace pipewright::exec
