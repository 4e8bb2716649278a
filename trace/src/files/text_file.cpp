#include "text_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace pipewright::trace {

TextFile::TextFile(std::filesystem::path file)
    : file_(std::move(file)), temporary_(file_.string() + ".part") {
  // T: write uncompressed.
  handle_ = ::gzopen(temporary_.c_str(), file_.extension() == ".gz" ? "wb6e" : "wbTe");
  if (handle_ == nullptr)
    fail();
}

TextFile::~TextFile() {
  if (handle_ == nullptr)
    return;
  ::gzclose(static_cast<gzFile>(handle_));
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void TextFile::write(std::string_view text) {
  constexpr std::size_t at_once = std::size_t{1} << 30U;
  for (; !text.empty(); text.remove_prefix(std::min(at_once, text.size())))
    if (const auto size = static_cast<unsigned>(std::min(at_once, text.size()));
        ::gzwrite(static_cast<gzFile>(handle_), text.data(), size) <= 0)
      fail();
}

void TextFile::finish() {
  const int closed = ::gzclose(static_cast<gzFile>(std::exchange(handle_, nullptr)));
  std::error_code renamed;
  if (closed == Z_OK)
    std::filesystem::rename(temporary_, file_, renamed);
  if (closed == Z_OK && !renamed)
    return;
  const int error = closed == Z_OK ? renamed.value() : errno;
  std::filesystem::remove(temporary_, renamed);
  errno = error;
  fail();
}

void TextFile::fail() const {
  throw std::runtime_error(
      fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(errno)));
}

}  // namespace pipewright::trace
