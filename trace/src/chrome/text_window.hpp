#pragma once

// The text of a file, decompressed if it is gzipped, one window at a time.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "chrome/inflated_file.hpp"

namespace pipewright::trace {

class TextWindow {
 public:
  /// Throws InputError if the file cannot be opened.
  explicit TextWindow(const std::filesystem::path& file);

  /// The text that was read and not yet dropped. One byte before it and `padding` bytes after it
  /// may also be read and written.
  char* data() { return storage_.get() + padding + begin_; }
  std::size_t size() const { return end_ - begin_; }
  /// Returns the position of data() in the text.
  std::uint64_t offset() const { return offset_; }

  /// Reads more text after the current end; returns false if there is none, or no room for it.
  /// Moves data().
  bool more();
  void drop(std::size_t bytes);

  /// Returns the next character without dropping it; nothing at the end.
  std::optional<char> peek();
  /// Drops white space.
  void skip_space();
  /// Returns true if all of `largest` is in use.
  bool is_full() const { return size() == largest; }

  /// Returns why the text ended early; empty if it did not.
  const std::string& failure() const { return failure_; }

  static constexpr std::size_t padding = 64;
  static constexpr std::size_t largest = std::size_t{64} << 20U;  // size of a single value

 private:
  bool make_room();

  InflatedFile file_;
  std::size_t capacity_;
  std::unique_ptr<char[]> storage_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;
  bool ended_ = false;
  std::string failure_;
};

}  // namespace pipewright::trace
