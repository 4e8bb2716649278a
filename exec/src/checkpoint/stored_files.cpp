#include "checkpoint/stored_files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/exec/checkpoint/crc32c.hpp"
#include "pipewright/exec/checkpoint/durable_file.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

void require_size(const std::filesystem::path& file, std::int64_t expected) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file, error));
  if (error)
    throw plan::InputError(fmt::format("{}: {}", file.string(), error.message()));
  if (size != expected)
    throw plan::InputError(
        fmt::format("{}: damaged: it has {} of {} bytes", file.string(), size, expected));
}

/// Reads a file, passes its contents to `take` and compares their checksum with `expected`.
void verify_contents(const std::filesystem::path& file, std::uint32_t expected,
                     const std::function<void(const char* data, std::size_t size)>& take) {
  std::uint32_t checksum = 0;
  read_pieces(file, [&](const char* data, std::size_t size) {
    checksum = crc32c(data, size, checksum);
    take(data, size);
  });
  if (checksum != expected)
    throw plan::InputError(
        fmt::format("{}: damaged: its contents have the checksum {:08x} instead of {:08x}",
                    file.string(), checksum, expected));
}

/// Throws InputError unless the file's header agrees with the manifest.
void require_described(const std::string& file, const StoredFile& stored,
                       const std::vector<StoredValue>& values) {
  const auto is_there = [&](const StoredTensor& tensor) {
    return std::any_of(values.begin(), values.end(), [&](const StoredValue& value) {
      return TensorShape{value.name, value.value.scalar_type(), value.value.sizes().vec()} ==
             tensor.shape;
    });
  };
  if (values.size() != stored.tensors.size() ||
      !std::all_of(stored.tensors.begin(), stored.tensors.end(), is_there))
    throw plan::InputError(fmt::format("{}: its tensors differ from those in the manifest", file));
}

}  // namespace

void require_files(const std::filesystem::path& folder, const Manifest& manifest) {
  for (const StoredLayer& layer : manifest.layers)
    for (const StoredFile& stored : layer.files)
      require_size(folder / stored.name, stored.size);
}

void verify_file(const std::filesystem::path& folder, const StoredFile& stored) {
  verify_contents(folder / stored.name, stored.checksum, [](const char*, std::size_t) {});
}

std::vector<StoredValue> read_stored(const std::filesystem::path& folder,
                                     const StoredFile& stored) {
  const auto file = folder / stored.name;
  require_size(file, stored.size);
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(stored.size));
  verify_contents(file, stored.checksum,
                  [&](const char* data, std::size_t size) { bytes.append(data, size); });
  auto values = parse_safetensors(bytes, file.string());
  require_described(file.string(), stored, values);
  return values;
}

}  // namespace pipewright::exec
