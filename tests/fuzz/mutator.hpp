#pragma once

// Texts that are almost those of a corpus. Some changes are of single letters; most know words,
// numbers and brackets, so that JSON stays JSON often enough to reach what lies behind.

#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::fuzz {

enum class TokenKind { Number, Word, Quoted, Other };

/// Where a word, a number, a quoted text or a single other letter stands.
struct Token {
  TokenKind kind = TokenKind::Other;
  std::size_t at = 0;
  std::size_t size = 0;
};
std::vector<Token> tokens_of(std::string_view text);

class Mutator {
 public:
  /// The letters and tokens to put in are those of the corpus, and what readers trip over.
  explicit Mutator(std::vector<std::string> corpus);

  std::string next();

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const std::string& any_text() { return corpus_[below(corpus_.size())]; }
  char any_letter() { return letters_[below(letters_.size())]; }
  const std::string& any_token(TokenKind kind);
  const std::string& any_token();
  std::string_view extreme_number();

  void mutate(std::string& text);
  void mutate_letters(std::string& text);
  void mutate_tokens(std::string& text);
  void change_number(std::string& text, const std::vector<Token>& tokens);
  void swap_tokens(std::string& text, const std::vector<Token>& tokens);
  void repeat(std::string& text, const std::vector<Token>& tokens);
  void nest(std::string& text, const Token& token);
  void move_line(std::string& text);

  std::vector<std::string> corpus_;
  std::array<std::vector<std::string>, 4> tokens_;  // by kind
  std::string letters_;
  std::mt19937 random_{1};  // the standard says which numbers come
};

}  // namespace pipewright::fuzz
