#include "chrome/text_window.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "pipewright/plan/error.hpp"

namespace pipewright::loop {

/// zlib hands on as it is what is not gzipped.
struct TextWindow::File {
  gzFile handle = nullptr;
  explicit File(const std::filesystem::path& file) {
    // To open a pipe would wait for whoever writes into it.
    std::error_code ignored;
    const auto status = std::filesystem::status(file, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
      throw plan::InputError(
          fmt::format("{}: cannot be read: it is no regular file", file.string()));
    handle = ::gzopen(file.c_str(), "rbe");
    if (handle == nullptr)
      throw plan::InputError(
          fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  }
  ~File() { ::gzclose(handle); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

TextWindow::TextWindow(const std::filesystem::path& file)
    : file_(std::make_unique<File>(file)),
      capacity_(std::size_t{1} << 20U),
      storage_(std::make_unique_for_overwrite<char[]>(capacity_ + 2 * padding)) {
  ::gzbuffer(file_->handle, 256U << 10U);
}

TextWindow::~TextWindow() = default;

bool TextWindow::more() {
  if (ended_ || !make_room())
    return false;
  char* const free = storage_.get() + padding + end_;
  const int read = ::gzread(file_->handle, free, static_cast<unsigned>(capacity_ - end_));
  if (read > 0)
    end_ += static_cast<std::size_t>(read);
  else
    ended_ = true;
  int error = Z_OK;
  const std::string message = ::gzerror(file_->handle, &error);
  if (read <= 0 && error != Z_OK && error != Z_STREAM_END)
    failure_ = error == Z_ERRNO ? std::strerror(errno)
                                : message.substr(message.rfind(": ") + 2);  // behind the path
  return read > 0;
}

/// At the end of the storage; false where there is as much as may be.
bool TextWindow::make_room() {
  if (begin_ > 0) {
    std::memmove(storage_.get() + padding, data(), size());
    end_ = size();
    begin_ = 0;
  }
  if (end_ < capacity_)
    return true;
  if (capacity_ >= largest)
    return false;
  const std::size_t larger = std::min(2 * capacity_, largest);
  auto storage = std::make_unique_for_overwrite<char[]>(larger + 2 * padding);
  std::memcpy(storage.get() + padding, data(), size());
  storage_ = std::move(storage);
  capacity_ = larger;
  return true;
}

void TextWindow::drop(std::size_t bytes) {
  begin_ += bytes;
  offset_ += bytes;
}

std::optional<char> TextWindow::peek() {
  if (size() == 0 && !more())
    return {};
  return *data();
}

void TextWindow::skip_space() {
  while (const auto letter = peek()) {
    if (std::isspace(static_cast<unsigned char>(*letter)) == 0)
      return;
    drop(1);
  }
}

}  // namespace pipewright::loop
