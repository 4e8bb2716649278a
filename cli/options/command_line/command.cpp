#include "options/command_line/command.hpp"

#include <algorithm>

namespace pipewright::cli {

std::vector<std::string> Option::spellings() const {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t comma = std::min(names.find(',', at), names.size());
    all.push_back(names.substr(at, comma - at));
    at = comma + 1;
  }
  return all;
}

bool Option::takes_path() const {
  return value == "FILE" || value == "FOLDER" || value == "PATH" || value == "SCENARIO";
}

}  // namespace pipewright::cli
