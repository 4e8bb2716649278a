#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numeric>

#include "pipewright/exec/data/tokens.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace tokens_data_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::error_of;
using test::TempFolder;
namespace fs = std::filesystem;

/// A file of the tokens `first`, `first` + 1, …, so that a token tells its place.
template <class Token>
fs::path write_counting(const TempFolder& folder, std::size_t count, Token first) {
  std::vector<Token> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return folder.write("tokens.bin", std::string(reinterpret_cast<const char*>(tokens.data()),
                                                count * sizeof(Token)));
}

template <class Token>
void check_windows(int vocabulary, Token first) {
  const TempFolder folder;
  const auto tokens = open_tokens(write_counting<Token>(folder, 400, first), 16, vocabulary,
                                  {.microbatches = 4, .microbatch_size = 8, .seed = 3});
  for (int step = 0; step < 3; ++step)
    for (int microbatch = 0; microbatch < 4; ++microbatch) {
      const at::Tensor input = tokens->input(step, microbatch);
      CHECK(input.sizes() == at::IntArrayRef{8, 16});
      CHECK(input.scalar_type() == at::kLong);
      CHECK(input.min().item<std::int64_t>() >= first);
      // The tokens count up: this also says that each row is one window of the file.
      CHECK(at::equal(input, input.slice(1, 0, 1) + at::arange(16)));
      CHECK(at::equal(tokens->target(step, microbatch), input + 1));
    }
}

TEST_CASE("tokens: windows of two bytes a token, and of four for large vocabularies",
          "[exec][data]") {
  check_windows<std::uint16_t>(65'536, 65'000);
  check_windows<std::uint32_t>(65'537, 65'100);
  check_windows<std::uint32_t>(3'000'000, 2'999'500);
}

TEST_CASE("tokens: every place that leaves room for the target is drawn, and no other",
          "[exec][data]") {
  const TempFolder folder;
  const auto tokens = open_tokens(write_counting<std::uint16_t>(folder, 20, 0), 16, 20,
                                  {.microbatches = 1, .microbatch_size = 200});
  const at::Tensor places = tokens->input(0, 0).select(1, 0);
  CHECK(at::equal(std::get<0>(at::_unique(places)), at::arange(4)));
}

TEST_CASE("tokens: a file that does not fit is refused with what would do", "[exec][data]") {
  const TempFolder folder;
  const auto refusal = [](const fs::path& file, int vocabulary) {
    return error_of([&] { open_tokens(file, 16, vocabulary, {}); });
  };
  const fs::path missing = folder.path() / "none.bin";
  CHECK(refusal(missing, 300) ==
        missing.string() +
            ": No such file or directory; here belong tokens of 2 bytes each, the lowest byte "
            "first, 17 of them at least: numpy's `tokens.astype(\"<u2\").tofile(path)` writes such "
            "a file");
  CHECK(refusal(missing, 100'000).find("4 bytes each") != std::string::npos);
  CHECK(refusal(folder.path(), 300).starts_with(folder.path().string() + ": Is a directory"));

  const fs::path odd = folder.write("odd.bin", std::string(41, '\0'));
  CHECK(refusal(odd, 300) ==
        odd.string() + ": its 41 bytes are 20 whole tokens of 2 bytes and 1 bytes left over");
  const fs::path file = write_counting<std::uint16_t>(folder, 16, 0);
  CHECK(refusal(file, 300) == file.string() +
                                  ": its 16 tokens of 2 bytes are too few: a window of 16 tokens "
                                  "and the token after it need 17");
  write_counting<std::uint16_t>(folder, 40, 270);
  CHECK(refusal(file, 310) == "no error");
  CHECK(refusal(file, 300) == file.string() +
                                  ": token 30 (counted from 0) is 300, but the vocabulary has 0 to "
                                  "299: model.vocabulary, or the tokenizer, is another");
}

}  // namespace tokens_data_test
