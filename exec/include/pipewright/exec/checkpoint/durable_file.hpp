#pragma once

// Files that survive a loss of power once they are closed. If a file cannot be written, DiskError
// names it.

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

/// Throws DiskError "FILE: cannot be WHAT: " followed by the text of errno. `what` is a participle
/// such as "written".
[[noreturn]] void throw_disk_error(const std::filesystem::path& file, std::string_view what);

/// A file that is being written, with the CRC-32C of the bytes written so far.
class DurableFile {
 public:
  /// Creates the file. Throws DiskError if it exists.
  explicit DurableFile(std::filesystem::path file);
  /// Closes the descriptor. Without a `close` before, the contents may be lost.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(const void* data, std::size_t size);
  /// Syncs the contents to the disk and closes the file. Afterwards they survive a loss of power.
  /// The file's name does so only after `sync_folder`.
  void close();

  std::int64_t size() const { return size_; }
  std::uint32_t checksum() const { return checksum_; }

 private:
  std::filesystem::path file_;
  int descriptor_;
  std::int64_t size_ = 0;
  std::uint32_t checksum_ = 0;
};

/// Syncs a folder to the disk, so that the names of its files survive a loss of power.
void sync_folder(const std::filesystem::path& folder);

/// Writes `text` to the new file FILE.tmp, syncs it and renames it to FILE, so that readers see the
/// previous file (or none) or all of the new one. Call `sync_folder` to make the name durable.
void write_durably(const std::filesystem::path& file, std::string_view text);

/// Passes the contents of a file to `take` in pieces of at most 1 MiB. Throws InputError if it
/// cannot be read.
void read_pieces(const std::filesystem::path& file,
                 const std::function<void(const char* data, std::size_t size)>& take);

}  // namespace pipewright::exec
