#include "chrome/inflated_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "pipewright/plan/error.hpp"

namespace pipewright::trace {
namespace {

constexpr unsigned block_bytes = 1U << 20U;

/// Empty where all went well.
std::string failure_of(gzFile file) {
  int error = Z_OK;
  const std::string message = ::gzerror(file, &error);
  if (error == Z_OK || error == Z_STREAM_END)
    return {};
  return error == Z_ERRNO ? std::strerror(errno)
                          : message.substr(message.rfind(": ") + 2);  // behind the path
}

}  // namespace

/// zlib gives a file that is not gzipped as it is.
struct InflatedFile::File {
  gzFile handle = nullptr;
  explicit File(const std::filesystem::path& file) {
    // To open a pipe would wait for whoever writes into it.
    std::error_code ignored;
    const auto status = std::filesystem::status(file, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
      throw plan::InputError(
          fmt::format("{}: cannot be read: it is not a regular file", file.string()));
    handle = ::gzopen(file.c_str(), "rbe");
    if (handle == nullptr)
      throw plan::InputError(
          fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
    ::gzbuffer(handle, 256U << 10U);
  }
  ~File() { ::gzclose(handle); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

InflatedFile::InflatedFile(const std::filesystem::path& file)
    : file_(std::make_unique<File>(file)), thread_([this] { read_ahead(); }) {}

InflatedFile::~InflatedFile() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void InflatedFile::read_ahead() {
  while (true) {
    Block block;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || ahead_.size() < most_ahead; });
      if (stopped_)
        return;
      if (!free_.empty()) {
        block = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!block.bytes)
      block.bytes = std::make_unique_for_overwrite<char[]>(block_bytes);
    const int bytes = ::gzread(file_->handle, block.bytes.get(), block_bytes);
    {
      const std::lock_guard lock(mutex_);
      if (bytes > 0) {
        block.size = static_cast<std::size_t>(bytes);
        ahead_.push_back(std::move(block));
      } else {
        failure_ = failure_of(file_->handle);
        ended_ = true;
      }
    }
    changed_.notify_all();
    if (bytes <= 0)
      return;
  }
}

bool InflatedFile::take_block() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || !ahead_.empty(); });
    if (ahead_.empty())
      return false;
    if (block_.bytes)
      free_.push_back(std::move(block_));
    block_ = std::move(ahead_.front());
    ahead_.pop_front();
    copied_ = 0;
  }
  changed_.notify_all();
  return true;
}

std::size_t InflatedFile::read(std::span<char> into) {
  if (copied_ == block_.size && !take_block())
    return 0;
  const std::size_t bytes = std::min(into.size(), block_.size - copied_);
  std::memcpy(into.data(), block_.bytes.get() + copied_, bytes);
  copied_ += bytes;
  return bytes;
}

}  // namespace pipewright::trace
