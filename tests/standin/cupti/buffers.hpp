#pragma once

// The buffers that the one who watches lends CUPTI, and where records begin in each.

#include <cupti.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "behaviour.hpp"

namespace pipewright::standin {

using Bytes = std::vector<std::uint8_t>;

/// Where the records of a buffer begin, and where the last one ends.
struct Records {
  std::vector<std::size_t> begins;
  std::size_t end = 0;
};

class Buffers {
 public:
  void behave(const Behaviour& behaviour);
  void lend(CUpti_BuffersCallbackRequestFunc wanted, CUpti_BuffersCallbackCompleteFunc filled);

  void put(const Bytes& record);
  /// A whole buffer, whose records begin there.
  void put(const Bytes& records, const std::vector<std::size_t>& begins);
  /// Hands back what is filled, also in part.
  void flush();
  std::size_t take_dropped();

  /// What is in a buffer that was handed back; null: it was not.
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
  Behaviour behaviour_;
  CUpti_BuffersCallbackRequestFunc wanted_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc filled_ = nullptr;
  Buffer current_;
  std::vector<Buffer> full_, late_, never_;
  std::map<const std::uint8_t*, Records> records_;
  std::size_t dropped_ = 0;
};

}  // namespace pipewright::standin
