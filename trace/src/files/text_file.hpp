#pragma once

// A text file that is written piece by piece, gzipped if its name ends in .gz.

#include <filesystem>
#include <string_view>

namespace pipewright::trace {

/// The file does not exist under its name before finish().
class TextFile {
 public:
  explicit TextFile(std::filesystem::path file);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  /// Throws std::runtime_error that names the file if writing fails, as finish() does.
  void write(std::string_view text);
  void finish();

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path file_, temporary_;
  void* handle_ = nullptr;  // zlib's
};

}  // namespace pipewright::trace
