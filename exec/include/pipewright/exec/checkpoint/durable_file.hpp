#pragma once

// Files that survive a loss of power once they are closed. Every failure is a DiskError that names
// the file.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pipewright::exec {

class DiskError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws "FILE: cannot be WHAT: " followed by the text of errno.
[[noreturn]] void throw_disk_error(const std::filesystem::path& file, std::string_view what);

/// A new file, with the checksum of the bytes written so far.
class DurableFile {
 public:
  explicit DurableFile(std::filesystem::path file);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(const void* data, std::size_t size);
  /// Writes everything to the disk. Afterwards the contents survive a loss of power; the file's
  /// name does once the folder is synced.
  void close();

  std::int64_t size() const { return size_; }
  std::uint32_t checksum() const { return checksum_; }

 private:
  std::filesystem::path file_;
  int descriptor_;
  std::int64_t size_ = 0;
  std::uint32_t checksum_ = 0;
};

/// Makes the names in a folder survive a loss of power.
void sync_folder(const std::filesystem::path& folder);

/// Writes a temporary file and renames it, so that readers see either no file or all of it.
void write_durably(const std::filesystem::path& file, std::string_view text);

/// Passes the contents of a file to `take`, piece by piece. Throws InputError if it cannot be read.
void read_pieces(const std::filesystem::path& file,
                 const std::function<void(const char* data, std::size_t size)>& take);

}  // namespace pipewright::exec
