#include "behaviour.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace pipewright::standin {
namespace {

[[noreturn]] void refuse(const std::string& word) {
  std::fprintf(stderr, "the stand-in for CUPTI does not know '%s'\n", word.c_str());
  std::abort();
}

void set(Behaviour& behaviour, const std::string& word) {
  const auto equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (name == "version")
    behaviour.version = static_cast<std::uint32_t>(std::stoul(value));
  else if (name == "refuse")
    behaviour.refuse[value.substr(0, value.find(':'))] =
        static_cast<CUptiResult>(std::stoi(value.substr(value.find(':') + 1)));
  else if (name == "watcher")
    behaviour.watcher = value;
  else if (name == "late")
    behaviour.late = true;
  else if (name == "missing")
    behaviour.missing = true;
  else if (name == "drop")
    behaviour.drop = std::stoi(value);
  else if (name == "lose_calls")
    behaviour.lose_calls = std::stoi(value);
  else if (name == "longer")
    behaviour.longer = std::stoul(value);
  else if (name == "newer")
    behaviour.newer = true;
  else if (name == "garbage")
    behaviour.garbage = true;
  else if (name == "cut")
    behaviour.cut = true;
  else if (name == "no_calls")
    behaviour.no_calls = true;
  else if (name == "play")
    behaviour.play = value;
  else
    refuse(word);
}

}  // namespace

Behaviour behaviour_of(const std::string& words) {
  Behaviour behaviour;
  std::istringstream text(words);
  for (std::string word; text >> word;)
    set(behaviour, word);
  return behaviour;
}

}  // namespace pipewright::standin
