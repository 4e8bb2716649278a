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

std::vector<std::string> given_options(const Command& command, const Command& plain) {
  std::vector<std::string> given;
  for (std::size_t at = 0; at < command.options.size(); ++at) {
    const Option& option = command.options[at];
    const bool is_given = std::visit(
        [&](auto* target) {
          return *target != *std::get<decltype(target)>(plain.options[at].target);
        },
        option.target);
    if (is_given)
      given.push_back(option.spellings().back());
  }
  return given;
}

}  // namespace pipewright::cli
