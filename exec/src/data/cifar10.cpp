#include "pipewright/exec/data/cifar10.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "pipewright/exec/data/dataset.hpp"
#include "pipewright/exec/hash.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t channels = 3;
constexpr std::int64_t side = 32;
constexpr std::int64_t record_size = 1 + channels * side * side;  // the label comes first
constexpr int classes = 10;

// Statistics over all pixels of the 50,000 training images, scaled to 0..1, rounded to the usual
// four digits.
constexpr std::array<float, channels> channel_mean{0.4914F, 0.4822F, 0.4465F};
constexpr std::array<float, channels> channel_deviation{0.2470F, 0.2435F, 0.2616F};

/// Returns a tensor [channels, 1, 1] that broadcasts over images.
at::Tensor by_channel(const std::array<float, channels>& values) {
  return at::tensor(at::ArrayRef<float>(values)).view({channels, 1, 1});
}

class Cifar10 final : public Dataset {
 public:
  Cifar10(at::Tensor records, int image_size, const BatchShape& shape)
      : records_(std::move(records)), image_size_(image_size), shape_(shape) {}

  at::Tensor input(int step, int microbatch) const override {
    const at::Tensor pixels = records_of(step, microbatch).narrow(1, 1, record_size - 1);
    const at::Tensor images = pixels.reshape({-1, channels, side, side}).to(at::kFloat) / 255;
    const at::Tensor normalized =
        (images - by_channel(channel_mean)) / by_channel(channel_deviation);
    return at::upsample_bilinear2d(normalized, {image_size_, image_size_}, /*align_corners=*/false);
  }

  at::Tensor target(int step, int microbatch) const override {
    return records_of(step, microbatch).select(1, 0).to(at::kLong);
  }

 private:
  at::Tensor records_of(int step, int microbatch) const {
    const std::int64_t number = std::int64_t{step} * shape_.microbatches + microbatch;
    const std::int64_t begin = number * shape_.microbatch_size;
    const std::int64_t end = begin + shape_.microbatch_size;

    // A microbatch may start in one epoch and end in another.
    const std::int64_t count = records_.size(0);
    std::vector<at::Tensor> parts;
    for (std::int64_t position = begin; position < end;) {
      const std::int64_t epoch = position / count;
      const std::int64_t epoch_begin = epoch * count;
      const std::int64_t part_end = std::min(end, epoch_begin + count);
      parts.push_back(order_of(epoch).slice(0, position - epoch_begin, part_end - epoch_begin));
      position = part_end;
    }
    return records_.index_select(0, at::cat(parts));
  }

  /// Returns the order of samples in an epoch. Computed in each call, in less than a millisecond,
  /// so that threads share no state.
  at::Tensor order_of(std::int64_t epoch) const {
    return at::randperm(records_.size(0),
                        at::detail::createCPUGenerator(hash_of({shape_.seed, epoch})), at::kLong);
  }

  at::Tensor records_;  // uint8 [count, record_size]
  int image_size_;
  BatchShape shape_;
};

/// Returns the data files, sorted by name.
std::vector<fs::path> find_files(const fs::path& path) {
  std::error_code error;
  if (path.extension() == ".bin" && fs::is_regular_file(path, error))
    return {path};

  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
    if (entry.path().filename().string().starts_with("data_batch_") &&
        entry.path().extension() == ".bin")
      files.push_back(entry.path());
  if (files.empty())
    throw plan::InputError(
        fmt::format("{}: {}; expected a folder with the data_batch_*.bin of CIFAR-10's binary "
                    "version, or one such file",
                    path.string(), error ? error.message() : "no data_batch_*.bin in it"));
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns uint8 [count, record_size] with every label checked.
at::Tensor read_records(const fs::path& file) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(fs::file_size(file, error));
  if (error)
    throw plan::InputError(fmt::format("{}: {}", file.string(), error.message()));
  const std::int64_t count = size / record_size;
  if (count == 0 || size % record_size != 0)
    throw plan::InputError(
        fmt::format("{}: expected one or more records of {} bytes, but its {} bytes are {} whole "
                    "records and {} bytes left over",
                    file.string(), record_size, size, count, size % record_size));

  at::Tensor records = at::empty({count, record_size}, at::kByte);
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(static_cast<char*>(records.data_ptr()), size))
    throw plan::InputError(fmt::format("{}: cannot be read", file.string()));

  const at::Tensor labels = records.select(1, 0);
  const at::Tensor bad_records = (labels >= classes).nonzero().flatten();
  if (bad_records.numel() > 0) {
    const auto bad = bad_records[0].item<std::int64_t>();
    throw plan::InputError(fmt::format("{}: record {} (counted from 0) has label {}, above {}",
                                       file.string(), bad, labels[bad].item<int>(), classes - 1));
  }
  return records;
}

}  // namespace

std::unique_ptr<Dataset> open_cifar10(const fs::path& folder, int image_size,
                                      const BatchShape& shape) {
  std::vector<at::Tensor> records;
  for (const fs::path& file : find_files(folder))
    records.push_back(read_records(file));
  return std::make_unique<Cifar10>(at::cat(records), image_size, shape);
}

}  // namespace pipewright::exec
