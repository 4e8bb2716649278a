#pragma once

// The words of a shell script, as far as arguments need it: quotes, comments, continued lines,
// arrays in parentheses, and variables that were set before. In a YAML file: a key as `--name:`,
// and the rest of its line as one word.

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::models {

struct ShellWord {
  std::string text;
  int line = 1;
  int column = 1;
  bool quoted = false;
};

/// An unset variable stays as written: `$LAYERS`. Options in a quoted value, `ARGS="--num-layers
/// 2"`, are read as words at that place, and `$ARGS` then gives none.
std::vector<ShellWord> shell_words(std::string_view script);

}  // namespace pipewright::models
