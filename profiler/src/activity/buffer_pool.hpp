#pragma once

// A pool of memory for records. Buffers are taken during the recorded work, so they are allocated
// before.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace pipewright::profiler {

class BufferPool {
 public:
  /// Makes `ready` zeroed buffers of `size` bytes now; later at most `most` exist.
  BufferPool(std::size_t size, int ready, int most);
  /// Leaks buffers that were taken and not returned, because their holder may still write to them.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  std::size_t size() const { return size_; }
  /// Returns a buffer of zeros; null if all `most` buffers are in use.
  std::uint8_t* take();
  /// Returns a buffer whose first `used` bytes are records. Ignores a buffer that was not taken.
  void fill(std::uint8_t* buffer, std::size_t used);

  struct Filled {
    std::uint8_t* data = nullptr;
    std::size_t used = 0;
  };
  /// Returns the buffers that were filled since the last call, in their order. Give each of them
  /// back.
  std::vector<Filled> filled();
  /// Makes a buffer zero again. Not to be called during recorded work, because it takes time.
  void give_back(const Filled& buffer);

  /// Returns the number of buffers that `take` had to make since the last call.
  std::uint64_t late();
  /// Returns the number of buffers that were taken and not returned.
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
