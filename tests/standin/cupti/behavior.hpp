#pragma once

// The stand-in's behavior, parsed from text.

#include <cupti.h>

#include <cstdint>
#include <map>
#include <string>

namespace pipewright::standin {

struct Behavior {
  std::uint32_t version = CUPTI_API_VERSION;
  std::map<std::string, CUptiResult> refuse;  // by function
  std::string watcher;
  bool late = false;
  bool missing = false;
  int drop = 0;
  int lose_calls = 0;
  std::size_t longer = 0;
  bool newer = false;
  bool garbage = false;
  bool cut = false;
  bool no_calls = false;
  std::string play;
};

/// Ends the process if a word is unknown, because a test that uses it would test nothing.
Behavior behavior_of(const std::string& words);

}  // namespace pipewright::standin
