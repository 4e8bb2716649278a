#include "chrome/text_window.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

namespace pipewright::trace {

TextWindow::TextWindow(const std::filesystem::path& file)
    : file_(file),
      capacity_(std::size_t{1} << 20U),
      storage_(std::make_unique_for_overwrite<char[]>(capacity_ + 2 * padding)) {}

bool TextWindow::more() {
  if (ended_ || !make_room())
    return false;
  char* const free = storage_.get() + padding + end_;
  const std::size_t read = file_.read({free, capacity_ - end_});
  end_ += read;
  if (read == 0) {
    ended_ = true;
    failure_ = file_.failure();
  }
  return read > 0;
}

/// Makes room at the end of the storage; returns false if it already has its largest size.
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

}  // namespace pipewright::trace
