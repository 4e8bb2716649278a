#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace pipewright::test {

inline std::string bytes_of_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace pipewright::test
