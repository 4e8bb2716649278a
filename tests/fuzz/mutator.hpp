#pragma once

// Makes texts that resemble those of a corpus. Some mutations change single characters; most work
// on words, numbers and brackets, so that JSON often stays valid enough to reach the later stages
// of a reader.

#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::fuzz {

enum class TokenKind { Number, Word, Quoted, Other };

/// Position of a word, a number, a quoted text or another single character.
struct Token {
  TokenKind kind = TokenKind::Other;
  std::size_t at = 0;
  std::size_t size = 0;
};
std::vector<Token> tokens_of(std::string_view text);

class Mutator {
 public:
  /// Insertions come from the corpus's characters and tokens, and from inputs that often break
  /// readers.
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
  std::mt19937 random_{1};  // its sequence is defined by the standard
};

}  // namespace pipewright::fuzz
