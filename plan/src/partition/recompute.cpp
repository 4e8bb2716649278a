#include "pipewright/plan/partition/recompute.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {

const std::vector<std::string>& recompute_modes() {
  static const std::vector<std::string> names{"none", "full", "selective"};
  return names;
}

std::string to_string(RecomputeMode mode) {
  return recompute_modes()[static_cast<std::size_t>(mode)];
}

RecomputeMode recompute_mode(const std::string& word) {
  const auto& words = recompute_modes();
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end())
    throw InputError(fmt::format("no recomputation is called \"{}\"; {} are", word, listed(words)));
  return static_cast<RecomputeMode>(found - words.begin());
}

}  // namespace pipewright::plan
