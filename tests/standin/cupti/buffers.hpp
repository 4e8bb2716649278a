#pragma once

// The buffers that a subscriber lends CUPTI, and the offsets of records in each.

#include <cupti.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "behavior.hpp"

namespace pipewright::standin {

using Bytes = std::vector<std::uint8_t>;

/// The offsets of a buffer's records, and the end of the last one.
struct Records {
  std::vector<std::size_t> begins;
  std::size_t end = 0;
};

class Buffers {
 public:
  void behave(const Behavior& behavior);
  void lend(CUpti_BuffersCallbackRequestFunc wanted, CUpti_BuffersCallbackCompleteFunc filled);

  void put(const Bytes& record);
  /// Adds a whole buffer, whose records begin at `begins`.
  void put(const Bytes& records, const std::vector<std::size_t>& begins);
  /// Returns all filled buffers to the subscriber, including a partly filled one.
  void flush();
  std::size_t take_dropped();

  /// Returns the records of a buffer that was returned; null for other buffers.
  const Records* records_in(const std::uint8_t* buffer);

 private:
  struct Buffer {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;
    Records records{};
  };
  bool make_room(std::size_t size);
  void close();
  void hand_back(std::vector<Buffer> buffers);

  std::mutex mutex_;
  Behavior behavior_;
  CUpti_BuffersCallbackRequestFunc wanted_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc filled_ = nullptr;
  Buffer current_;
  std::vector<Buffer> full_, late_, never_;
  std::map<const std::uint8_t*, Records> records_;
  std::size_t dropped_ = 0;
};

}  // namespace pipewright::standin
