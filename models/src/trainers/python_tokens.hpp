#pragma once

// The logical lines of a Python file as tokens.

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::models {

struct PythonToken {
  enum class Kind { Word, Number, Text, Sign };
  Kind kind = Kind::Sign;
  std::string text;  // of Text: its content
  int line = 1;
  int column = 1;

  bool is_sign(std::string_view sign) const { return kind == Kind::Sign && text == sign; }
  bool is_word(std::string_view word) const { return kind == Kind::Word && text == word; }
};

/// A logical line continues within brackets. The column of its first token is its indentation.
using PythonLine = std::vector<PythonToken>;

/// Returns the lines without comments and empty lines. Every sign is one character; a text whose
/// content Python computes is the sign `f`. Throws InputError for a text without an end.
std::vector<PythonLine> python_lines(std::string_view text, const std::string& name);

}  // namespace pipewright::models
