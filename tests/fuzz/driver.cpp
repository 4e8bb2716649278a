// Runs a fuzz target without libFuzzer: on every file of the corpus, and on mutations of them that
// are the same every time.
//
//   pipewright_fuzz_schedule CORPUS ROUNDS

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::string> read_corpus(const char* folder) {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string next() {
    std::string text = any_text();
    for (std::size_t times = 1 + below(4); times > 0; --times)
      mutate(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const std::string& any_text() { return corpus_[below(corpus_.size())]; }

  void mutate(std::string& text) {
    static constexpr std::string_view letters = "0123456789FBIWR,\n;()\"# _SENDRECVLOAD-\0";
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text.insert(at, 1, letters[below(letters.size())]);
        break;
      case 1:
        if (!text.empty())
          text[at] = letters[below(letters.size())];
        break;
      case 2:
        text.erase(at, below(8));
        break;
      case 3: {  // two cells change places
        const std::size_t other = below(text.size());
        if (!text.empty())
          std::swap(text[at], text[other]);
        break;
      }
      default: {
        const std::string& other = any_text();
        text.insert(at, other.substr(below(other.size()), below(40)));
      }
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_{1};
};

void run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3)
    return std::fprintf(stderr, "usage: %s CORPUS ROUNDS\n", argv[0]), 2;
  const auto corpus = read_corpus(argv[1]);
  if (corpus.empty())
    return std::fprintf(stderr, "no files in %s\n", argv[1]), 2;
  for (const std::string& text : corpus)
    run(text);
  Mutator mutator(corpus);
  const int rounds = std::atoi(argv[2]);
  for (int round = 0; round < rounds; ++round)
    run(mutator.next());
  std::printf("%zu files and %d mutations\n", corpus.size(), rounds);
}
