#pragma once

// A file's bytes where they lie, without a copy.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace pipewright::plan {

/// All bytes of a file, for as long as it lives.
class Mapping {
 public:
  enum class Pages {
    AtOnce,   // all are read now
    AsAsked,  // when they are looked at
  };
  /// Throws InputError that names the file.
  explicit Mapping(const std::filesystem::path& file, Pages pages = Pages::AsAsked);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(bytes_), size_};
  }
  std::string_view text() const { return {static_cast<const char*>(bytes_), size_}; }

 private:
  void* bytes_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace pipewright::plan
