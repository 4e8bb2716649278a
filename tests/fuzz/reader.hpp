#pragma once

// A reader of other people's text, and what it promises. It registers itself under its name, so
// that one program holds all of them.

#include <string_view>

namespace pipewright::fuzz {

using TryText = void (*)(std::string_view text);

struct Reader {
  const char* name;
  TryText try_text;  // ends the program where a promise is broken
  const Reader* next;

  Reader(const char* reader, TryText promise);
};

/// Null when there is none of that name.
const Reader* find_reader(std::string_view name);

}  // namespace pipewright::fuzz
