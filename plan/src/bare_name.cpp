#include "pipewright/plan/bare_name.hpp"

#include <cctype>

namespace pipewright::plan {

std::string bare_name(const std::string& name) {
  std::string letters;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

}  // namespace pipewright::plan
