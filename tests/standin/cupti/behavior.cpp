#include "behavior.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace pipewright::standin {
namespace {

[[noreturn]] void refuse(const std::string& word) {
  std::fprintf(stderr, "the stand-in for CUPTI does not know '%s'\n", word.c_str());
  std::abort();
}

void set(Behavior& behavior, const std::string& word) {
  const auto equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (name == "version")
    behavior.version = static_cast<std::uint32_t>(std::stoul(value));
  else if (name == "refuse")
    behavior.refuse[value.substr(0, value.find(':'))] =
        static_cast<CUptiResult>(std::stoi(value.substr(value.find(':') + 1)));
  else if (name == "watcher")
    behavior.watcher = value;
  else if (name == "late")
    behavior.late = true;
  else if (name == "missing")
    behavior.missing = true;
  else if (name == "drop")
    behavior.drop = std::stoi(value);
  else if (name == "lose_calls")
    behavior.lose_calls = std::stoi(value);
  else if (name == "longer")
    behavior.longer = std::stoul(value);
  else if (name == "newer")
    behavior.newer = true;
  else if (name == "garbage")
    behavior.garbage = true;
  else if (name == "cut")
    behavior.cut = true;
  else if (name == "no_calls")
    behavior.no_calls = true;
  else if (name == "play")
    behavior.play = value;
  else
    refuse(word);
}

}  // namespace

Behavior behavior_of(const std::string& words) {
  Behavior behavior;
  std::istringstream text(words);
  for (std::string word; text >> word;)
    set(behavior, word);
  return behavior;
}

}  // namespace pipewright::standin
