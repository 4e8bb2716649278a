#pragma once

// Reads the bytes of a file, decompressed if it is gzipped, on a thread that reads ahead.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace pipewright::trace {

class InflatedFile {
 public:
  /// Throws InputError if the file cannot be opened.
  explicit InflatedFile(const std::filesystem::path& file);
  ~InflatedFile();
  InflatedFile(const InflatedFile&) = delete;
  InflatedFile& operator=(const InflatedFile&) = delete;

  /// Copies the next bytes and returns their number, 0 at the end.
  std::size_t read(std::span<char> into);

  /// After the end: why the bytes ended early; empty if they did not.
  const std::string& failure() const { return failure_; }

 private:
  static constexpr std::size_t most_ahead = 4;  // blocks
  struct Block {
    std::unique_ptr<char[]> bytes;  // not zeroed: most files are much shorter
    std::size_t size = 0;
  };

  void read_ahead();
  bool take_block();

  struct File;
  std::unique_ptr<File> file_;
  Block block_;  // the block that is being copied
  std::size_t copied_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> ahead_;
  std::vector<Block> free_;
  bool ended_ = false;    // no block will follow those in `ahead_`
  bool stopped_ = false;  // the reader wants no more
  std::string failure_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace pipewright::trace
