// Reads the checkpoints of a training that runs as another program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>

#include "cli/support/program.hpp"
#include "support/catch.hpp"

namespace pipewright::test {

/// Returns the newest step of complete checkpoints, whose folders are named after it; -1: none.
inline int newest_step_in(const std::filesystem::path& checkpoints) {
  int newest = -1;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints, none))
    if (const std::string name = entry.path().filename(); name.find('.') == std::string::npos)
      newest = std::max(newest, std::stoi(name.substr(name.find('_') + 1)));
  return newest;
}

/// Returns the bytes of all layers after that step, by file.
inline std::map<std::string, std::string> weights_after(const std::filesystem::path& checkpoints,
                                                        int step) {
  std::map<std::string, std::string> files;
  const auto folder = checkpoints / fmt::format("step_{:08}", step);
  REQUIRE(std::filesystem::exists(folder));
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors")
      files[entry.path().filename()] = text_of(entry.path());
  CHECK(files.size() > 8);
  return files;
}

}  // namespace pipewright::test
