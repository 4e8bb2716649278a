// Runs a reader without libFuzzer: on every file of its corpus, and on reproducible mutations of
// them. If a run aborts, the file `LAST` contains the text that caused it.
//
//   pipewright_fuzz READER CORPUS ROUNDS [LAST]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "mutator.hpp"
#include "promise.hpp"
#include "reader.hpp"

#ifdef PIPEWRIGHT_FUZZ_LIMITS_MEMORY
#include <sys/resource.h>
#endif

namespace {

/// Reads the files in the order of their names, because directories list them in any order.
std::vector<std::string> read_corpus(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

/// Limits memory to 1 GiB. No text of a few kilobytes needs more, but an allocation sized by a
/// number in the text might.
void limit_memory() {
#ifdef PIPEWRIGHT_FUZZ_LIMITS_MEMORY
  constexpr rlim_t most = 1U << 30U;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_DATA, &limit);
#endif
}

class Runner {
 public:
  Runner(pipewright::fuzz::TryText try_text, const char* last) : try_text_(try_text), last_(last) {}

  void run(const std::string& text) {
    if (last_ != nullptr)
      std::ofstream(last_, std::ios::binary | std::ios::trunc) << text;
    const auto start = std::chrono::steady_clock::now();
    try_text_(text);
    slowest_ = std::max(slowest_, std::chrono::steady_clock::now() - start);
  }

  double slowest_ms() const { return std::chrono::duration<double, std::milli>(slowest_).count(); }

 private:
  pipewright::fuzz::TryText try_text_;
  const char* last_;
  std::chrono::steady_clock::duration slowest_{};
};

}  // namespace

namespace fuzz = pipewright::fuzz;

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5)
    return std::fprintf(stderr, "usage: %s READER CORPUS ROUNDS [LAST]\n", argv[0]), 2;
  const auto* const reader = fuzz::find_reader(argv[1]);
  if (reader == nullptr)
    return std::fprintf(stderr, "unknown reader '%s'\n", argv[1]), 2;
  const auto corpus = read_corpus(argv[2]);
  if (corpus.empty())
    return std::fprintf(stderr, "no corpus files in %s\n", argv[2]), 2;
  limit_memory();
  Runner runner(reader->try_text, argc == 5 ? argv[4] : nullptr);
  for (const std::string& text : corpus)
    runner.run(text);
  fuzz::demand(fuzz::values_read > 0, "at least one file of the corpus can be read");
  fuzz::Mutator mutator(corpus);
  const int rounds = std::atoi(argv[3]);
  for (int round = 0; round < rounds; ++round)
    runner.run(mutator.next());
  std::printf("%zu files and %d mutations, %d values read, the slowest text took %.1f ms\n",
              corpus.size(), rounds, fuzz::values_read, runner.slowest_ms());
}
