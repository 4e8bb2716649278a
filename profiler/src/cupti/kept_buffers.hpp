#pragma once

// Stores CUPTI's raw buffers in a folder, small enough for tests on machines without a GPU:
// PIPEWRIGHT_KEEP_CUPTI=FOLDER. The first process that records creates the folder and stores its
// own buffers there.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cupti/activity_records.hpp"

namespace pipewright::profiler {

class KeptBuffers {
 public:
  static constexpr std::size_t most_bytes = std::size_t{192} << 10U;  // limit for all buffers

  /// Returns null if the environment requests no storing, or another process stores there already.
  /// Throws InputError if the folder cannot be created. `version` is CUPTI's.
  static std::unique_ptr<KeptBuffers> from_environment(std::uint32_t version);

  KeptBuffers(std::filesystem::path folder, std::uint32_t version);

  /// Stores a label that a host thread opens or closes.
  void opened(std::uint64_t label, Nanoseconds now);
  void closed(std::uint64_t label, Nanoseconds now);
  /// Stores a buffer with the names to which its records point; if there is not enough room, as
  /// many records as fit.
  void add(ActivityBytes buffer, const std::vector<std::size_t>& begins);
  /// Writes what was stored so far. Buffers added later belong to the next collection.
  void end_collection();

 private:
  struct Buffer {
    int collection = 0;
    std::string file;
    std::size_t size = 0;
    std::vector<std::size_t> begins;
  };
  struct Label {
    std::uint64_t label = 0;
    std::uint64_t thread = 0;
    Nanoseconds begin = 0;
    Nanoseconds end = 0;
  };
  void keep_names(ActivityBytes buffer, const std::vector<std::size_t>& begins);

  std::filesystem::path folder_;
  std::uint32_t version_;
  int collection_ = 1;
  std::size_t kept_ = 0, left_out_ = 0;  // bytes
  std::vector<Buffer> buffers_;
  std::map<std::uint64_t, std::string> names_;  // by address
  std::mutex mutex_;
  std::vector<Label> labels_;
};

}  // namespace pipewright::profiler
