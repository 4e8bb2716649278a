#include "pipewright/exec/data/text.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <fstream>

#include "hash.hpp"
#include "pipewright/exec/data/dataset.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

class Text final : public Dataset {
 public:
  Text(at::Tensor bytes, int sequence, const BatchShape& shape)
      : bytes_(std::move(bytes)), sequence_(sequence), shape_(shape) {}

  at::Tensor input(int step, int microbatch) const override {
    return windows(step, microbatch, /*shift=*/0);
  }
  at::Tensor target(int step, int microbatch) const override {
    return windows(step, microbatch, /*shift=*/1);
  }

 private:
  at::Tensor windows(int step, int microbatch, int shift) const {
    // The last window leaves one byte for its target.
    const auto offsets = static_cast<std::uint64_t>(bytes_.numel() - sequence_);
    std::vector<at::Tensor> windows;
    for (int sample = 0; sample < shape_.microbatch_size; ++sample) {
      const std::uint64_t offset = hash_of({shape_.seed, step, microbatch, sample}) % offsets;
      windows.push_back(bytes_.narrow(0, static_cast<std::int64_t>(offset) + shift, sequence_));
    }
    return at::stack(windows).to(at::kLong);
  }

  at::Tensor bytes_;  // uint8, the whole file
  int sequence_;
  BatchShape shape_;
};

}  // namespace

std::unique_ptr<Dataset> open_text(const std::filesystem::path& file, int sequence,
                                   const BatchShape& shape) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file, error));
  if (error)
    throw plan::InputError(fmt::format("{}: {}", file.string(), error.message()));
  if (size <= sequence)
    throw plan::InputError(
        fmt::format("{}: its {} bytes are too few: a window of {} bytes and the byte after it "
                    "need {}",
                    file.string(), size, sequence, sequence + 1));

  at::Tensor bytes = at::empty({size}, at::kByte);
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(static_cast<char*>(bytes.data_ptr()), size))
    throw plan::InputError(fmt::format("{}: cannot be read", file.string()));
  return std::make_unique<Text>(std::move(bytes), sequence, shape);
}

}  // namespace pipewright::exec
