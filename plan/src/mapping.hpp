#pragma once

// Read-only memory mappings of whole files.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace pipewright::plan {

/// A read-only mapping of a whole file.
class Mapping {
 public:
  enum class Pages {
    AtOnce,   // all pages are read at once
    AsAsked,  // pages are read on first access
  };
  /// Maps the file. Throws InputError that names it.
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
