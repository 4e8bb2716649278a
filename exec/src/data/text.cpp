#include "pipewright/exec/data/text.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <fstream>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/lfs_pointer.hpp"
#include "windows.hpp"

namespace pipewright::exec {
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
  plan::reject_lfs_pointer(
      {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(size)},
      file.string());
  return std::make_unique<Windows>(std::move(bytes), sequence, shape);
}

}  // namespace pipewright::exec
