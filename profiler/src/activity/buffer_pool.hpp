#pragma once

// Memory that records are written to: taken while the work goes on, so it is there before.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace pipewright::profiler {

class BufferPool {
 public:
  /// `ready` buffers of `size` bytes are made now, all zero; there are never more than `most`.
  BufferPool(std::size_t size, int ready, int most);
  /// Those that were taken and did not come back are left to whoever may still write to them.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  std::size_t size() const { return size_; }
  /// A buffer of zeros; null when all `most` are in use.
  std::uint8_t* take();
  /// Its first `used` bytes are records. One that was not taken is left alone.
  void fill(std::uint8_t* buffer, std::size_t used);

  struct Filled {
    std::uint8_t* data = nullptr;
    std::size_t used = 0;
  };
  /// Those that were filled since the last time, in their order; each is to be given back.
  std::vector<Filled> filled();
  /// Makes it zero again. Not while the work goes on: that takes its time.
  void give_back(const Filled& buffer);

  /// Buffers that were made by `take`, since the last time.
  std::uint64_t late();
  /// Buffers that were taken and have not come back.
  std::uint64_t out();

 private:
  std::uint8_t* make();

  std::size_t size_;
  std::size_t most_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<std::uint8_t[]>> all_;
  std::vector<std::uint8_t*> free_, out_;
  std::deque<Filled> filled_;
  std::uint64_t late_ = 0;
};

}  // namespace pipewright::profiler
