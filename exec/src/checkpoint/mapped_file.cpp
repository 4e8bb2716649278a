#include "pipewright/exec/checkpoint/mapped_file.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/lfs_pointer.hpp"

namespace pipewright::exec {

at::Tensor mapped(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file, error));
  if (error)
    throw plan::InputError(fmt::format("{}: {}", file.string(), error.message()));
  if (size == 0)
    throw plan::InputError(fmt::format("{}: it is empty", file.string()));
  at::Tensor bytes;
  try {
    bytes = at::from_file(file.string(), /*shared=*/false, size, at::dtype(at::kByte));
  } catch (const c10::Error&) {
    throw plan::InputError(fmt::format("{}: cannot be read", file.string()));
  }
  plan::reject_lfs_pointer(text_of(bytes), file.string());
  return bytes;
}

std::string_view text_of(const at::Tensor& bytes) {
  return {static_cast<const char*>(bytes.const_data_ptr()),
          static_cast<std::size_t>(bytes.numel())};
}

}  // namespace pipewright::exec
