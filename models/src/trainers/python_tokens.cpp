#include "trainers/python_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "pipewright/plan/error.hpp"

namespace pipewright::models {
namespace {

using TokenKind = PythonToken::Kind;

bool is_letter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalpha(byte) != 0 || c == '_' || byte >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::vector<PythonLine> run() {
    while (at_ < text_.size())
      step();
    end_line();
    return std::move(lines_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void advance() {
    if (text_[at_++] == '\n') {
      ++row_;
      column_ = 1;
    } else {
      ++column_;
    }
  }
  void end_line() {
    if (!line_.empty())
      lines_.push_back(std::move(line_));
    line_.clear();
  }
  void skip_comment() {
    while (at_ < text_.size() && peek() != '\n')
      advance();
  }

  void step() {
    const char c = peek();
    if (c == '\n' && depth_ == 0)
      end_line();
    if (c == '#')
      skip_comment();
    else if (c == '\\' && peek(1) == '\n')
      advance(), advance();
    else if (std::isspace(static_cast<unsigned char>(c)) != 0)
      advance();
    else
      token();
  }

  void token() {
    PythonToken token{.text = "", .line = row_, .column = column_};
    const char c = peek();
    if (c == '"' || c == '\'') {
      string(token, /*is_raw=*/false);
    } else if (is_letter(c)) {
      token.kind = TokenKind::Word;
      while (is_letter(peek()) || is_digit(peek()))
        take(token);
      if ((peek() == '"' || peek() == '\'') && token.text.size() <= 2)
        prefixed(token);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number(token);
    } else {
      take(token);
      if (c == '(' || c == '[' || c == '{')
        ++depth_;
      else if (c == ')' || c == ']' || c == '}')
        depth_ = std::max(0, depth_ - 1);
    }
    line_.push_back(std::move(token));
  }
  void take(PythonToken& token) {
    token.text += peek();
    advance();
  }

  void number(PythonToken& token) {
    token.kind = TokenKind::Number;
    char last = '\0';
    while (is_letter(peek()) || is_digit(peek()) || peek() == '.' ||
           ((peek() == '+' || peek() == '-') && (last == 'e' || last == 'E'))) {
      last = peek();
      if (last != '_')
        token.text += last;
      advance();
    }
  }

  /// Reads a text with a prefix, of which `r` and `u` have the content that is written.
  void prefixed(PythonToken& token) {
    std::string prefix = std::move(token.text);
    token.text.clear();
    std::ranges::transform(prefix, prefix.begin(),
                           [](unsigned char x) { return static_cast<char>(std::tolower(x)); });
    string(token, prefix.find('r') != prefix.npos);
    if (prefix != "r" && prefix != "u") {
      token.kind = TokenKind::Sign;
      token.text = "f";
    }
  }

  void string(PythonToken& token, bool is_raw) {
    token.kind = TokenKind::Text;
    const char quote = peek();
    const bool is_triple = peek(1) == quote && peek(2) == quote;
    const std::string end(is_triple ? 3 : 1, quote);
    for (std::size_t i = 0; i < end.size(); ++i)
      advance();
    while (text_.substr(at_, end.size()) != end) {
      if (at_ >= text_.size() || (!is_triple && peek() == '\n'))
        throw plan::InputError(fmt::format("{}:{}:{}: the end of this text is missing", name_,
                                           token.line, token.column));
      if (peek() == '\\' && at_ + 1 < text_.size() && !is_raw)
        escape(token);
      else
        take(token);
    }
    for (std::size_t i = 0; i < end.size(); ++i)
      advance();
  }
  void escape(PythonToken& token) {
    advance();
    const char c = peek();
    if (c == 'n' || c == 't')
      token.text += c == 'n' ? '\n' : '\t';
    else if (c != '\n')
      token.text += c;
    advance();
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int row_ = 1;
  int column_ = 1;
  int depth_ = 0;
  PythonLine line_;
  std::vector<PythonLine> lines_;
};

}  // namespace

std::vector<PythonLine> python_lines(std::string_view text, const std::string& name) {
  return Lexer(text, name).run();
}

}  // namespace pipewright::models
