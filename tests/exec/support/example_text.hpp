// What a page shows and what a test compiles are the same text.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace pipewright::test {

/// `file`: below the project, such as "/docs/model.md".
inline std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(std::string(PIPEWRIGHT_SOURCE_DIR) + file).rdbuf();
  return text.str();
}

inline std::string between(const std::string& text, const std::string& begin,
                           const std::string& end) {
  const auto first = text.find(begin) + begin.size();
  return text.substr(first, text.find(end, first) - first);
}

}  // namespace pipewright::test
