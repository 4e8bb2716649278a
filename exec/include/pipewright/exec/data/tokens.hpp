#pragma once

// Tokens to train on: what a tokenizer made of a text, as numbers one behind the other.

#include <filesystem>
#include <memory>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Windows of `sequence` tokens of a file, which stays on its disk and is mapped, in the order that
/// `shape` says; the target is the window one token later. Both are int64 [microbatch_size,
/// sequence]. A token has two bytes, the lower first, or four where the vocabulary is larger than
/// 65,536; or what Megatron-LM's .idx says, where one lies beside the file. Packed: inputs are
/// tokens and, for each, which document of the sample it is of (-1: padding), and microbatches
/// weigh what they have of targets. Throws InputError when a file cannot be read, is too short, is
/// no whole number of tokens, or has one that is none of the vocabulary.
std::unique_ptr<Dataset> open_tokens(const std::filesystem::path& file, int sequence,
                                     int vocabulary, const BatchShape& shape);

}  // namespace pipewright::exec
