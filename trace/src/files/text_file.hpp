#pragma once

// A text that is written piece by piece, gzipped where the file is called *.gz.

#include <filesystem>
#include <string_view>

namespace pipewright::trace {

/// Nothing of the name is there before finish().
class TextFile {
 public:
  explicit TextFile(std::filesystem::path file);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  /// Throws std::runtime_error naming the file when the disk refuses, as finish() does.
  void write(std::string_view text);
  void finish();

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path file_, temporary_;
  void* handle_ = nullptr;  // zlib's
};

}  // namespace pipewright::trace
