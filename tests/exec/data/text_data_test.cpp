#include <ATen/ATen.h>
#include <fmt/format.h>

#include <fstream>
#include <numeric>

#include "pipewright/exec/data/dataset.hpp"
#include "pipewright/exec/data/text.hpp"
#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace text_data_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::TempFolder;
namespace fs = std::filesystem;

/// Writes a file of the bytes 0, 1, 2, … `size` - 1 (up to 256), so that a byte is its own offset.
fs::path write_counting(const TempFolder& folder, int size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  return folder.write("text", bytes);
}

TEST_CASE("Text: inputs and targets are int64 windows, the target one byte later", "[exec][data]") {
  const TempFolder folder;
  const auto text = open_text(write_counting(folder, 256), 16,
                              {.microbatches = 4, .microbatch_size = 8, .seed = 3});
  for (int step = 0; step < 5; ++step)
    for (int microbatch = 0; microbatch < 4; ++microbatch) {
      const at::Tensor input = text->input(step, microbatch);
      CHECK(input.sizes() == at::IntArrayRef{8, 16});
      CHECK(input.scalar_type() == at::kLong);
      // The bytes count up, so this also checks that each row is one window of the file.
      CHECK(at::equal(input, input.slice(1, 0, 1) + at::arange(16)));
      CHECK(at::equal(text->target(step, microbatch), input + 1));
    }
}

TEST_CASE("Text: every offset that leaves room for the target is sampled, and no other",
          "[exec][data]") {
  const TempFolder folder;
  const auto text =
      open_text(write_counting(folder, 20), 16, {.microbatches = 1, .microbatch_size = 200});
  const at::Tensor offsets = text->input(0, 0).select(1, 0);
  CHECK(at::equal(std::get<0>(at::_unique(offsets)), at::arange(4)));
}

TEST_CASE("Text: a file of one window and a byte has one sample", "[exec][data]") {
  const TempFolder folder;
  const auto text = open_text(write_counting(folder, 17), 16, {});
  CHECK(at::equal(text->input(0, 0), at::arange(16).unsqueeze(0)));
  CHECK(at::equal(text->target(0, 0), at::arange(1, 17).unsqueeze(0)));
}

TEST_CASE("Text: bytes above 127 are tokens above 127", "[exec][data]") {
  const TempFolder folder;
  const auto text = open_text(write_counting(folder, 256), 255, {});
  CHECK(text->target(0, 0).max().item<int>() == 255);
  CHECK(text->input(0, 0).min().item<int>() == 0);
}

TEST_CASE("Text: a microbatch depends only on seed, step and microbatch", "[exec][data]") {
  const TempFolder folder;
  const fs::path file = write_counting(folder, 256);
  const BatchShape shape{.microbatches = 4, .microbatch_size = 8, .seed = 3};
  const auto text = open_text(file, 16, shape);
  const at::Tensor input = text->input(2, 1);
  text->input(0, 0);
  CHECK(at::equal(text->input(2, 1), input));
  CHECK(at::equal(open_text(file, 16, shape)->input(2, 1), input));

  CHECK_FALSE(at::equal(text->input(2, 2), input));
  CHECK_FALSE(at::equal(text->input(1, 2), input));
  BatchShape other_seed = shape;
  other_seed.seed = 4;
  CHECK_FALSE(at::equal(open_text(file, 16, other_seed)->input(2, 1), input));
}

TEST_CASE("Text: a file too short for a window and its target is rejected", "[exec][data]") {
  const TempFolder folder;
  const fs::path file = write_counting(folder, 16);
  CHECK_THROWS_AS(open_text(file, 16, {}), plan::InputError);
  CHECK_THROWS_WITH(open_text(file, 16, {}),
                    fmt::format("{}: its 16 bytes are too few: a window of 16 bytes and the byte "
                                "after it need 17",
                                file.string()));
}

TEST_CASE("Text: a missing file and a folder are rejected by name", "[exec][data]") {
  const TempFolder folder;
  const fs::path missing = folder.path() / "missing.txt";
  CHECK_THROWS_AS(open_text(missing, 16, {}), plan::InputError);
  CHECK_THROWS_WITH(open_text(missing, 16, {}),
                    fmt::format("{}: No such file or directory", missing.string()));
  CHECK_THROWS_AS(open_text(folder.path(), 16, {}), plan::InputError);
  CHECK_THROWS_WITH(open_text(folder.path(), 16, {}),
                    fmt::format("{}: Is a directory", folder.path().string()));
}

}  // namespace text_data_test
