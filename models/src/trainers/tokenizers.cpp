#include "trainers/tokenizers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace pipewright::models {
namespace {

struct Named {
  std::string_view name;
  int size;
};

/// By --tokenizer-type: the vocabularies of Megatron's classes without a custom file.
constexpr std::array by_type{
    Named{"GPT2BPETokenizer", 50257},  Named{"BertWordPieceLowerCase", 30522},
    Named{"BertWordPieceCase", 28996}, Named{"Llama2Tokenizer", 32000},
    Named{"Llama3Tokenizer", 128256},  Named{"GPTSentencePieceTokenizer", 256000},
    Named{"TikTokenizer", 131072}};

/// By parts of a Hugging Face tokenizer's name, in lower case.
constexpr std::array by_model{Named{"llama-3", 128256},        Named{"llama3", 128256},
                              Named{"llama-2", 32000},         Named{"mixtral", 32000},
                              Named{"mistral-7b-v0.1", 32000}, Named{"gpt2", 50257}};

/// By the name of a vocabulary file.
constexpr std::array by_file{Named{"gpt2", 50257}, Named{"bert-large-cased", 28996},
                             Named{"bert-base-cased", 28996}, Named{"uncased", 30522}};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

template <class Table>
std::optional<KnownVocabulary> in(const Table& table, const std::string& text) {
  if (text.empty())
    return {};
  for (const Named& named : table)
    if (lower(text).find(named.name) != std::string::npos)
      return KnownVocabulary{named.size, text};
  return {};
}

}  // namespace

std::optional<KnownVocabulary> known_vocabulary(const TokenizerWords& words) {
  for (const Named& named : by_type)
    if (words.type == named.name)
      return KnownVocabulary{named.size, words.type};
  if (words.type.empty())
    return in(by_file, words.file);
  return words.type == "HuggingFaceTokenizer" ? in(by_model, words.model) : std::nullopt;
}

}  // namespace pipewright::models
