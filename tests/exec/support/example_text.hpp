// Reads texts of the project, so that a page shows the same text that a test compiles.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace pipewright::test {

/// `file`: path in the project, such as "/docs/model.md".
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
