#pragma once

// The bytes of a file, inflated where it is gzipped, by a thread that reads ahead of who uses them.

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
  /// Throws InputError where the file cannot be read.
  explicit InflatedFile(const std::filesystem::path& file);
  ~InflatedFile();
  InflatedFile(const InflatedFile&) = delete;
  InflatedFile& operator=(const InflatedFile&) = delete;

  /// Copies what comes next; how much, 0 at the end.
  std::size_t read(std::span<char> into);

  /// After the end: why the bytes ended before their time; empty where they did not.
  const std::string& failure() const { return failure_; }

 private:
  static constexpr std::size_t most_ahead = 4;  // blocks
  struct Block {
    std::unique_ptr<char[]> bytes;  // not set to zero: most files are much shorter
    std::size_t size = 0;
  };

  void read_ahead();
  bool take_block();

  struct File;
  std::unique_ptr<File> file_;
  Block block_;  // the one that is being copied
  std::size_t copied_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> ahead_;
  std::vector<Block> free_;
  bool ended_ = false;    // nothing comes behind `ahead_`
  bool stopped_ = false;  // nobody wants more
  std::string failure_;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace pipewright::trace
