#pragma once

// A reader of external files, and the properties that it must satisfy. It registers itself by name,
// so that one program contains all of them.

#include <string_view>

namespace pipewright::fuzz {

using TryText = void (*)(std::string_view text);

struct Reader {
  const char* name;
  TryText try_text;  // ends the program if a property is violated
  const Reader* next;

  Reader(const char* reader, TryText promise);
};

/// Returns null if there is no such reader.
const Reader* find_reader(std::string_view name);

}  // namespace pipewright::fuzz
