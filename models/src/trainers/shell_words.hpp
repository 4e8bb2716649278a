#pragma once

// The words of a shell script, as far as arguments go: quotes, comments, lines that go on, arrays
// in parentheses, and variables that were set further up. Of a YAML file: a key, `--name:`, and the
// rest of its line as one word.

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

/// What a variable that is not set stands for stays as written: `$LAYERS`. Options in a quoted
/// value, `ARGS="--num-layers 2"`, are words where they stand, and `$ARGS` is none.
std::vector<ShellWord> shell_words(std::string_view script);

}  // namespace pipewright::models
