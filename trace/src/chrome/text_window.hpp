#pragma once

// The text of a file, inflated where it is gzipped, a window at a time.

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
  /// Throws InputError where the file cannot be read.
  explicit TextWindow(const std::filesystem::path& file);

  /// What was read and not dropped yet. One byte before and `padding` bytes behind it may be
  /// written and read as well.
  char* data() { return storage_.get() + padding + begin_; }
  std::size_t size() const { return end_ - begin_; }
  /// Where data() stands in the text.
  std::uint64_t offset() const { return offset_; }

  /// Reads more behind what is there; false where there is none, or no room for it. Moves data().
  bool more();
  void drop(std::size_t bytes);

  /// The next letter, which stays; nothing at the end.
  std::optional<char> peek();
  /// Drops white space.
  void skip_space();
  /// Whether all of `largest` is in use.
  bool is_full() const { return size() == largest; }

  /// Why the text ended before its time; empty where it did not.
  const std::string& failure() const { return failure_; }

  static constexpr std::size_t padding = 64;
  static constexpr std::size_t largest = std::size_t{64} << 20U;  // that one value can be

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
