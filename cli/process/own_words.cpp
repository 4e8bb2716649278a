#include "process/own_words.hpp"

#include <unistd.h>

#include <fstream>
#include <iterator>

namespace pipewright::cli {

std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t at = 0; at < all.size(); at += words.back().size() + 1)
    words.emplace_back(all.c_str() + at);
  return words;
}

void become(const std::string& program, std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(program.c_str(), arguments.data());
}

}  // namespace pipewright::cli
