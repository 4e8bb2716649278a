#include "pipewright/exec/data/cifar10.hpp"

#include <fmt/format.h>
#include <torch/types.h>

#include <algorithm>
#include <fstream>

#include "pipewright/exec/data/dataset.hpp"
#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace cifar10_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::TempFolder;
namespace fs = std::filesystem;

constexpr int record_size = 3073;

/// Returns a label, then pixels that all have `shade`, except that the red of row 1, column 2 is
/// 255.
std::string record(int label, int shade) {
  std::string bytes(record_size, static_cast<char>(shade));
  bytes[0] = static_cast<char>(label);
  bytes[1 + 1 * 32 + 2] = static_cast<char>(255);
  return bytes;
}

/// Returns records with label i and shade 10 i, for every i in [begin, end).
std::string records(int begin, int end) {
  std::string bytes;
  for (int i = begin; i < end; ++i)
    bytes += record(i, 10 * i);
  return bytes;
}

/// Returns the labels of the first `count` microbatches, all in one step.
std::vector<std::int64_t> labels_of(const Dataset& dataset, int count) {
  std::vector<std::int64_t> labels;
  for (int m = 0; m < count; ++m) {
    const at::Tensor target = dataset.target(0, m);
    labels.insert(labels.end(), target.const_data_ptr<std::int64_t>(),
                  target.const_data_ptr<std::int64_t>() + target.numel());
  }
  return labels;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> labels) {
  std::sort(labels.begin(), labels.end());
  return labels;
}

TEST_CASE("CIFAR-10: pixels are normalized by channel and keep their positions", "[exec][data]") {
  const TempFolder folder;
  folder.write("data_batch_1.bin", record(7, 51));
  const auto cifar10 = open_cifar10(folder.path(), 32, {});
  CHECK(at::equal(cifar10->target(0, 0), torch::tensor({7}, at::kLong)));

  const at::Tensor image = cifar10->input(0, 0);
  CHECK(image.scalar_type() == at::kFloat);
  REQUIRE(image.sizes() == at::IntArrayRef{1, 3, 32, 32});
  const auto pixel = [&](int channel, int row, int column) {
    return image[0][channel][row][column].item<float>();
  };
  CHECK(pixel(0, 0, 0) == Approx((0.2 - 0.4914) / 0.2470));  // 51 / 255 = 0.2
  CHECK(pixel(1, 1, 2) == Approx((0.2 - 0.4822) / 0.2435));
  CHECK(pixel(2, 31, 31) == Approx((0.2 - 0.4465) / 0.2616));
  CHECK(pixel(0, 1, 2) == Approx((1.0 - 0.4914) / 0.2470));
  CHECK(pixel(0, 2, 1) == Approx((0.2 - 0.4914) / 0.2470));
}

TEST_CASE("CIFAR-10: images are interpolated when they are enlarged", "[exec][data]") {
  const TempFolder folder;
  folder.write("data_batch_1.bin", record(7, 51));
  const at::Tensor small = open_cifar10(folder.path(), 32, {})->input(0, 0);
  const at::Tensor large = open_cifar10(folder.path(), 64, {})->input(0, 0);
  REQUIRE(large.sizes() == at::IntArrayRef{1, 3, 64, 64});
  CHECK(large[0][1].min().item<float>() == Approx(small[0][1].min().item<float>()));

  // Without aligned corners, pixel 5 of the large row lies at 2.25 of the small one.
  const double shade = small[0][0][0][0].item<float>();
  const double bright = small[0][0][1][2].item<float>();
  CHECK(large[0][0][2][5].item<float>() == Approx(shade + 0.75 * 0.75 * (bright - shade)));
}

TEST_CASE("CIFAR-10: images keep their labels, through every file of the folder", "[exec][data]") {
  const TempFolder folder;
  folder.write("data_batch_1.bin", records(0, 4));
  folder.write("data_batch_2.bin", records(4, 10));
  folder.write("test_batch.bin", "of no interest");
  folder.write("readme.html", "of no interest");
  const auto cifar10 = open_cifar10(folder.path(), 32, {.microbatches = 5, .microbatch_size = 2});
  CHECK(sorted(labels_of(*cifar10, 5)) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});

  for (int m = 0; m < 5; ++m) {
    const at::Tensor blue = cifar10->input(0, m).select(1, 2).select(1, 0).select(1, 0);
    const at::Tensor shade = (blue * 0.2616 + 0.4465) * 255;
    CHECK(at::allclose(shade, 10.0 * cifar10->target(0, m).to(at::kFloat)));
  }
}

TEST_CASE("CIFAR-10: a single file is enough", "[exec][data]") {
  const TempFolder folder;
  const fs::path file = folder.write("test_batch.bin", records(0, 3));
  const auto cifar10 = open_cifar10(file, 32, {.microbatches = 3});
  CHECK(sorted(labels_of(*cifar10, 3)) == std::vector<std::int64_t>{0, 1, 2});
}

TEST_CASE("CIFAR-10: every epoch visits every record once, in its own order", "[exec][data]") {
  const TempFolder folder;
  folder.write("data_batch_1.bin", records(0, 10));
  // Microbatches of 4 straddle the epochs of 10.
  const BatchShape shape{.microbatches = 5, .microbatch_size = 4, .seed = 2};
  const auto labels = labels_of(*open_cifar10(folder.path(), 32, shape), 5);
  REQUIRE(labels.size() == 20);
  const std::vector<std::int64_t> first(labels.begin(), labels.begin() + 10);
  const std::vector<std::int64_t> second(labels.begin() + 10, labels.end());

  const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(sorted(first) == all);
  CHECK(sorted(second) == all);
  CHECK(first != all);
  CHECK(first != second);
}

TEST_CASE("CIFAR-10: a microbatch may span several epochs", "[exec][data]") {
  const TempFolder folder;
  folder.write("data_batch_1.bin", records(0, 2));
  const auto cifar10 = open_cifar10(folder.path(), 32, {.microbatches = 1, .microbatch_size = 6});
  CHECK(sorted(labels_of(*cifar10, 1)) == std::vector<std::int64_t>{0, 0, 0, 1, 1, 1});
}

TEST_CASE("CIFAR-10: the order depends only on seed and position", "[exec][data]") {
  const TempFolder folder;
  folder.write("data_batch_1.bin", records(0, 10));
  const BatchShape shape{.microbatches = 5, .microbatch_size = 2, .seed = 2};
  const auto cifar10 = open_cifar10(folder.path(), 32, shape);
  const at::Tensor target = cifar10->target(1, 3);
  cifar10->target(0, 0);
  CHECK(at::equal(cifar10->target(1, 3), target));
  CHECK(at::equal(open_cifar10(folder.path(), 32, shape)->target(1, 3), target));

  // Microbatch 3 of step 1 is number 8 of all, for any number of microbatches in a step.
  BatchShape one_step = shape;
  one_step.microbatches = 10;
  CHECK(at::equal(open_cifar10(folder.path(), 32, one_step)->target(0, 8), target));

  BatchShape other_seed = shape;
  other_seed.seed = 3;
  CHECK(labels_of(*open_cifar10(folder.path(), 32, other_seed), 5) != labels_of(*cifar10, 5));
}

TEST_CASE("CIFAR-10: files without a whole number of records are rejected with their size",
          "[exec][data]") {
  const TempFolder folder;
  const auto message = [&](const fs::path& file, const char* sizes) {
    return fmt::format("{}: expected one or more records of 3073 bytes, but its {}", file.string(),
                       sizes);
  };
  SECTION("truncated") {
    folder.write("data_batch_1.bin", records(0, 3));
    const auto file = folder.write("data_batch_2.bin", records(0, 3).substr(0, 3 * 3073 - 1));
    CHECK_THROWS_AS(open_cifar10(folder.path(), 32, {}), plan::InputError);
    CHECK_THROWS_WITH(open_cifar10(folder.path(), 32, {}),
                      message(file, "9218 bytes are 2 whole records and 3072 bytes left over"));
  }
  SECTION("with a byte too many") {
    const auto file = folder.write("data_batch_1.bin", record(0, 0) + "x");
    CHECK_THROWS_AS(open_cifar10(folder.path(), 32, {}), plan::InputError);
    CHECK_THROWS_WITH(open_cifar10(folder.path(), 32, {}),
                      message(file, "3074 bytes are 1 whole records and 1 bytes left over"));
  }
  SECTION("empty") {
    const auto file = folder.write("data_batch_1.bin", "");
    CHECK_THROWS_AS(open_cifar10(folder.path(), 32, {}), plan::InputError);
    CHECK_THROWS_WITH(open_cifar10(folder.path(), 32, {}),
                      message(file, "0 bytes are 0 whole records and 0 bytes left over"));
  }
}

TEST_CASE("CIFAR-10: a label above 9 is rejected with its file and record", "[exec][data]") {
  const TempFolder folder;
  const fs::path file = folder.write("data_batch_1.bin", records(0, 2) + record(10, 0));
  CHECK_THROWS_AS(open_cifar10(folder.path(), 32, {}), plan::InputError);
  CHECK_THROWS_WITH(
      open_cifar10(folder.path(), 32, {}),
      fmt::format("{}: record 2 (counted from 0) has label 10, above 9", file.string()));
}

TEST_CASE("CIFAR-10: a folder without the files is rejected by name", "[exec][data]") {
  const TempFolder folder;
  folder.write("data_batch_1", records(0, 1));  // named as in the version for Python
  const auto message = [](const fs::path& path, const char* reason) {
    return fmt::format(
        "{}: {}; expected a folder with the data_batch_*.bin of CIFAR-10's binary "
        "version, or one such file",
        path.string(), reason);
  };
  CHECK_THROWS_AS(open_cifar10(folder.path(), 32, {}), plan::InputError);
  CHECK_THROWS_WITH(open_cifar10(folder.path(), 32, {}),
                    message(folder.path(), "no data_batch_*.bin in it"));

  const fs::path missing = folder.path() / "missing";
  CHECK_THROWS_WITH(open_cifar10(missing, 32, {}), message(missing, "No such file or directory"));
  const fs::path odd = folder.path() / "data_batch_1";
  CHECK_THROWS_WITH(open_cifar10(odd, 32, {}), message(odd, "Not a directory"));
}

}  // namespace cifar10_test
