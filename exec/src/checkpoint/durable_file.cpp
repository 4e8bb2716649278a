#include "pipewright/exec/checkpoint/durable_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "pipewright/exec/checkpoint/crc32c.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

constexpr std::size_t at_once = std::size_t{1} << 20;  // bytes read or written at once

/// A file descriptor for reading, closed by the destructor.
class Opened {
 public:
  Opened(const std::filesystem::path& file, int flags)
      : descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | flags)) {}
  ~Opened() {
    if (descriptor_ >= 0)
      ::close(descriptor_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

void throw_disk_error(const std::filesystem::path& file, std::string_view what) {
  throw DiskError(fmt::format("{}: cannot be {}: {}", file.string(), what, std::strerror(errno)));
}

DurableFile::DurableFile(std::filesystem::path file)
    : file_(std::move(file)),
      descriptor_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0)
    throw_disk_error(file_, "made");
}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

void DurableFile::write(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, bytes, std::min(size, at_once));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      throw_disk_error(file_, "written");
    const auto part = static_cast<std::size_t>(written);
    checksum_ = crc32c(bytes, part, checksum_);
    size_ += written;
    bytes += part;
    size -= part;
  }
}

void DurableFile::close() {
  if (::fsync(descriptor_) != 0)
    throw_disk_error(file_, "written");
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0)
    throw_disk_error(file_, "written");
}

void sync_folder(const std::filesystem::path& folder) {
  const Opened opened(folder, O_DIRECTORY);
  // EINVAL means that this file system cannot sync folders.
  if (opened.get() < 0 || (::fsync(opened.get()) != 0 && errno != EINVAL))
    throw_disk_error(folder, "synced");
}

void write_durably(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path neighbor = file.string() + ".tmp";
  DurableFile temporary(neighbor);
  try {
    temporary.write(text.data(), text.size());
    temporary.close();
    if (::rename(neighbor.c_str(), file.c_str()) != 0)
      throw_disk_error(file, "written");
  } catch (const DiskError&) {
    std::error_code ignored;
    std::filesystem::remove(neighbor, ignored);
    throw;
  }
}

void read_pieces(const std::filesystem::path& file,
                 const std::function<void(const char* data, std::size_t size)>& take) {
  const auto refuse = [&] {
    throw plan::InputError(
        fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  };
  const Opened opened(file, 0);
  if (opened.get() < 0)
    refuse();
  for (std::vector<char> buffer(at_once);;) {
    const ssize_t size = ::read(opened.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR)
      continue;
    if (size < 0)
      refuse();
    if (size == 0)
      return;
    take(buffer.data(), static_cast<std::size_t>(size));
  }
}

}  // namespace pipewright::exec
