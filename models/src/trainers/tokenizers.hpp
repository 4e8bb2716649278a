#pragma once

// Vocabulary sizes of known tokenizers, for Megatron arguments that name one instead of giving
// --vocab-size.

#include <optional>
#include <string>

namespace pipewright::models {

struct TokenizerWords {
  std::string type{};   // --tokenizer-type
  std::string model{};  // --tokenizer-model
  std::string file{};   // --vocab-file
};

struct KnownVocabulary {
  int size = 0;
  std::string whose{};
};

/// Returns nothing if the size is not public, or depends on the file.
std::optional<KnownVocabulary> known_vocabulary(const TokenizerWords& words);

}  // namespace pipewright::models
