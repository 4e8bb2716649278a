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

/// Writes a file of the tokens `first`, `first` + 1, …, so that a token gives its position.
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
      // The tokens count up, so this also checks that each row is one window of the file.
      CHECK(at::equal(input, input.slice(1, 0, 1) + at::arange(16)));
      CHECK(at::equal(tokens->target(step, microbatch), input + 1));
    }
}

TEST_CASE("Tokens: windows have two bytes per token, and four for large vocabularies",
          "[exec][data]") {
  check_windows<std::uint16_t>(65'536, 65'000);
  check_windows<std::uint32_t>(65'537, 65'100);
  check_windows<std::uint32_t>(3'000'000, 2'999'500);
}

TEST_CASE("Tokens: every offset that leaves room for the target is sampled, and no other",
          "[exec][data]") {
  const TempFolder folder;
  const auto tokens = open_tokens(write_counting<std::uint16_t>(folder, 20, 0), 16, 20,
                                  {.microbatches = 1, .microbatch_size = 200});
  const at::Tensor places = tokens->input(0, 0).select(1, 0);
  CHECK(at::equal(std::get<0>(at::_unique(places)), at::arange(4)));
}

TEST_CASE("Tokens: a file that does not fit is rejected with what is needed", "[exec][data]") {
  const TempFolder folder;
  const auto refusal = [](const fs::path& file, int vocabulary) {
    return error_of([&] { open_tokens(file, 16, vocabulary, {}); });
  };
  const fs::path missing = folder.path() / "none.bin";
  CHECK(refusal(missing, 300) ==
        missing.string() +
            ": No such file or directory. Expected a file of tokens with 2 bytes each, the lowest "
            "byte first; numpy's `tokens.astype(\"<u2\").tofile(path)` writes such a file");
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
                                  "299. Check model.vocabulary and the tokenizer");
}

TEST_CASE("Tokens: a file that seems to have tokens of another width is rejected", "[exec][data]") {
  const TempFolder folder;
  const auto refusal = [](const fs::path& file, int vocabulary) {
    const std::string error = error_of([&] { open_tokens(file, 16, vocabulary, {}); });
    return error.substr(0, error.find(". Write"));
  };
  const fs::path narrow = write_counting<std::uint32_t>(folder, 100, 0);
  CHECK(refusal(narrow, 300) == narrow.string() +
                                    ": read as tokens of 2 bytes, every second one is 0, so it "
                                    "seems to have tokens of 4 bytes");
  CHECK(refusal(write_counting<std::int64_t>(folder, 100, 0), 300) ==
        narrow.string() +
            ": read as tokens of 2 bytes, all but every fourth one is 0, so it seems "
            "to have tokens of 8 bytes");
  CHECK(refusal(write_counting<std::int64_t>(folder, 100, 0), 100'000) ==
        narrow.string() +
            ": read as tokens of 4 bytes, every second one is 0, so it seems to have "
            "tokens of 8 bytes");
  CHECK(refusal(write_counting<std::uint16_t>(folder, 100, 0), 300) == "no error");
  CHECK(refusal(folder.write("zeros.bin", std::string(400, '\0')), 300) == "no error");
}

TEST_CASE("Tokens: files that are not raw numbers are rejected", "[exec][data]") {
  const TempFolder folder;
  const auto refusal = [&](const std::string& bytes) {
    const fs::path file = folder.write("tokens.bin", bytes + std::string(300, '\1'));
    return error_of([&] { open_tokens(file, 16, 60'000, {}); })
        .substr((folder.path() / "tokens.bin").string().size());
  };
  CHECK(refusal("\x93NUMPY\1") ==
        ": this is an array file of numpy, which begins with a header. Write the numbers alone, "
        "with `tofile`");
  CHECK(refusal("version https://git-lfs.github.com/spec/v1\n")
            .starts_with(": this is a Git LFS pointer"));
}

TEST_CASE("Tokens: shuffled windows occur once in each epoch, in another order in the next",
          "[exec][data]") {
  const TempFolder folder;
  const BatchShape shape{
      .microbatches = 3, .microbatch_size = 5, .seed = 4, .order = plan::SampleOrder::Shuffled};
  // 30 windows of 16 tokens, the token after the last one, and some tokens that do not fill a
  // window.
  const auto tokens =
      open_tokens(write_counting<std::uint16_t>(folder, 30 * 16 + 9, 0), 16, 500, shape);
  std::vector<at::Tensor> epochs;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<at::Tensor> begins;
    for (int step = 2 * epoch; step < 2 * epoch + 2; ++step)
      for (int microbatch = 0; microbatch < 3; ++microbatch) {
        begins.push_back(tokens->input(step, microbatch).select(1, 0));
        CHECK(at::equal(tokens->target(step, microbatch), tokens->input(step, microbatch) + 1));
      }
    epochs.push_back(at::cat(begins));
    CHECK(at::equal(std::get<0>(epochs.back().sort()), at::arange(30) * 16));
  }
  CHECK_FALSE(at::equal(epochs[0], epochs[1]));
  CHECK_FALSE(at::equal(epochs[0], std::get<0>(epochs[0].sort())));
}

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

/// Returns an index as Megatron-LM writes it, for documents with these numbers of tokens, of one
/// sequence each.
std::string index_of(const std::vector<int>& lengths, std::uint8_t type, int size) {
  std::string bytes("MMIDIDX\0\0", 9);
  append<std::uint64_t>(bytes, 1);
  append<std::uint8_t>(bytes, type);
  append<std::uint64_t>(bytes, lengths.size());
  append<std::uint64_t>(bytes, lengths.size() + 1);
  for (const int length : lengths)
    append<std::int32_t>(bytes, length);
  std::int64_t begin = 0;
  for (const int length : lengths) {
    append<std::int64_t>(bytes, begin);
    begin += std::int64_t{length} * size;
  }
  for (std::size_t document = 0; document <= lengths.size(); ++document)
    append<std::int64_t>(bytes, static_cast<std::int64_t>(document));
  return bytes;
}

BatchShape packed_samples(int microbatches, int size) {
  return {.microbatches = microbatches,
          .microbatch_size = size,
          .seed = 1,
          .order = plan::SampleOrder::Packed};
}

/// Returns the rows of an epoch, sorted by their first token.
at::Tensor rows_by_first(const Dataset& data, int microbatches, std::size_t which) {
  std::vector<at::Tensor> rows;
  for (int m = 0; m < microbatches; ++m)
    rows.push_back(which < 2 ? data.inputs(0, m)[which] : data.targets(0, m)[0]);
  std::vector<at::Tensor> firsts;
  for (int m = 0; m < microbatches; ++m)
    firsts.push_back(data.inputs(0, m)[0].select(1, 0));
  return at::cat(rows).index_select(0, at::cat(firsts).argsort());
}

TEST_CASE("Tokens: whole documents are packed, and targets stay within their document",
          "[exec][data]") {
  const TempFolder folder;
  write_counting<std::int32_t>(folder, 3 + 4 + 1 + 9 + 2, 10);
  folder.write("tokens.idx", index_of({3, 4, 1, 9, 2}, /*int32=*/4, 4));
  const auto data =
      open_tokens(folder.path() / "tokens.bin", /*sequence=*/6, 100, packed_samples(3, 1));
  // Documents are 10 to 12, 13 to 16, 17, 18 to 26 and 27 to 28.
  CHECK(at::equal(rows_by_first(*data, 3, 0), at::tensor({10, 11, 13, 14, 15, 0,   //
                                                          18, 19, 20, 21, 22, 23,  //
                                                          24, 25, 27, 0, 0, 0},
                                                         at::kLong)
                                                  .view({3, 6})));
  CHECK(at::equal(rows_by_first(*data, 3, 1), at::tensor({0, 0, 1, 1, 1, -1,  //
                                                          0, 0, 0, 0, 0, 0,   //
                                                          0, 0, 1, -1, -1, -1},
                                                         at::kLong)
                                                  .view({3, 6})));
  CHECK(at::equal(rows_by_first(*data, 3, 2), at::tensor({11, 12, 14, 15, 16, -100,  //
                                                          19, 20, 21, 22, 23, 24,    //
                                                          25, 26, 28, -100, -100, -100},
                                                         at::kLong)
                                                  .view({3, 6})));
  double weights = 0;
  for (int m = 0; m < 3; ++m) {
    const double counted = (data->target(0, m) >= 0).sum().item<double>();
    CHECK(data->weight(0, m) == Approx(counted * 3 / 14));
    weights += data->weight(0, m);
  }
  CHECK(weights == Approx(3));
}

TEST_CASE("Tokens: a token may mark the end of documents", "[exec][data]") {
  const TempFolder folder;
  const std::vector<std::uint16_t> tokens{5, 6, 0, 7, 8, 9, 0, 4, 3};
  const fs::path file = folder.write(
      "tokens.bin", std::string(reinterpret_cast<const char*>(tokens.data()), tokens.size() * 2));
  BatchShape shape = packed_samples(1, 1);
  CHECK(error_of([&] { open_tokens(file, 6, 100, shape); }) ==
        file.string() +
            ": the ends of its documents are unknown. Set data.document_end to the token that ends "
            "a document, or put an .idx file next to it");
  shape.document_end = 0;
  const auto data = open_tokens(file, 6, 100, shape);
  CHECK(at::equal(data->inputs(0, 0)[0], at::tensor({5, 6, 7, 8, 9, 4}, at::kLong).view({1, 6})));
  CHECK(at::equal(data->target(0, 0), at::tensor({6, 0, 8, 9, 0, 3}, at::kLong).view({1, 6})));
}

TEST_CASE("Tokens: a pair of Megatron-LM files that do not belong together is rejected",
          "[exec][data]") {
  const TempFolder folder;
  write_counting<std::int32_t>(folder, 19, 0);
  const std::string idx = (folder.path() / "tokens.idx").string();
  const auto refusal = [&](const std::string& bytes) {
    folder.write("tokens.idx", bytes);
    return error_of([&] { open_tokens(folder.path() / "tokens.bin", 6, 100, {}); });
  };
  const std::string sound = index_of({3, 4, 1, 9, 2}, 4, 4);
  CHECK(refusal(sound) == "no error");
  CHECK(refusal("MMIDID") ==
        idx + ": it does not begin like an .idx file of Megatron-LM (MMIDIDX)");
  CHECK(refusal(index_of({3, 4, 1, 9, 2}, 7, 4)) ==
        idx +
            ": token type 7 is not an integer type (possible: 1 to 5, for 1, 1, 2, 4 and 8 bytes, "
            "and 8, for 2 unsigned bytes)");
  CHECK(refusal(index_of({3, 4, 1, 9}, 4, 4)).find("17 tokens of 4 bytes, but the file has 76") !=
        std::string::npos);
  CHECK(refusal(index_of({3, 4, 1, 9, 2}, 4, 8)) ==
        idx + ": sequence 1 of 4 tokens begins at byte 24, but the previous one ends at 12");
  for (std::size_t length = 9; length < sound.size(); ++length)
    CHECK(refusal(sound.substr(0, length)).starts_with(idx + ": unexpected end before "));
}

}  // namespace tokens_data_test
