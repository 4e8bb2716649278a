#pragma once

// How many words a tokenizer has, where Megatron's arguments name it and not --vocab-size.

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

/// Nothing where the size is not public, or differs from file to file.
std::optional<KnownVocabulary> known_vocabulary(const TokenizerWords& words);

}  // namespace pipewright::models
