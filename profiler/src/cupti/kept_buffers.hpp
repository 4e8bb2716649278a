#pragma once

// CUPTI's raw buffers in a folder, small enough for tests on machines without a GPU:
// PIPEWRIGHT_KEEP_CUPTI=FOLDER. The first process that records makes the folder and keeps its own.

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
  static constexpr std::size_t most_bytes = std::size_t{192} << 10U;  // of all buffers

  /// Null where the environment asks for none, or somebody else keeps there already. Throws
  /// InputError where the folder cannot be made. `version`: of CUPTI.
  static std::unique_ptr<KeptBuffers> from_environment(std::uint32_t version);

  KeptBuffers(std::filesystem::path folder, std::uint32_t version);

  /// What a thread of the host was at.
  void opened(std::uint64_t label, Nanoseconds now);
  void closed(std::uint64_t label, Nanoseconds now);
  /// A buffer with the text that its records point to; of one for which there is no room, as many
  /// records as there is room for.
  void add(ActivityBytes buffer, const std::vector<std::size_t>& begins);
  /// Writes what was kept so far. Buffers that are added from now on are of another stretch of
  /// recording.
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
  std::map<std::uint64_t, std::string> names_;  // by their place in memory
  std::mutex mutex_;
  std::vector<Label> labels_;
};

}  // namespace pipewright::profiler
