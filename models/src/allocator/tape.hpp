#pragma once

// Tensors of a replay: blocks of an allocator, or nothing but their bytes, which takes a hundredth
// of the time and tells what is allocated at once.

#include <algorithm>
#include <cstddef>
#include <optional>

#include "pipewright/models/allocator/caching_allocator.hpp"

namespace pipewright::models::replay {

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): no tensor, as of a pointer
  explicit Tensor(CachingAllocator::Block* block)
      : block_(block), bytes_(block == nullptr ? 0 : 1) {}
  explicit Tensor(long long bytes) : bytes_(bytes) {}

  CachingAllocator::Block* block() const { return block_; }
  long long bytes() const { return bytes_; }
  friend bool operator==(const Tensor& tensor, std::nullptr_t) { return tensor.bytes_ == 0; }

 private:
  CachingAllocator::Block* block_ = nullptr;
  long long bytes_ = 0;  // of a block only whether there is one
};

/// A replay counts the tensors' bytes, or the bytes that an allocator with unlimited memory
/// reserves.
enum class Counted { Allocated, Reserved };

class Tape {
 public:
  explicit Tape(Counted counted) {
    if (counted == Counted::Reserved)
      allocator_.emplace();
  }

  /// None of no bytes.
  Tensor make(long long bytes, int stream = 0) {
    if (bytes <= 0)
      return {};
    if (!allocator_)
      return counted(bytes);
    return Tensor(allocator_->allocate(bytes, stream));
  }
  /// Those that there are, in this order.
  template <class... Tensors>
  void drop(Tensors&... tensors) {
    (drop_one(tensors), ...);
  }
  /// One for as long as a kernel needs it.
  void touch(long long bytes) {
    Tensor tensor = make(bytes);
    drop(tensor);
  }
  /// Without an allocator `reserved` stays 0.
  const AllocatorCounters& counters() const {
    return allocator_ ? allocator_->counters() : counters_;
  }

 private:
  Tensor counted(long long bytes) {
    constexpr long long round = 512;  // the allocator's
    const long long whole = (bytes + round - 1) / round * round;
    counters_.allocated += whole;
    counters_.peak_allocated = std::max(counters_.peak_allocated, counters_.allocated);
    return Tensor(whole);
  }
  void drop_one(Tensor& tensor) {
    if (tensor == nullptr)
      return;
    if (allocator_)
      allocator_->free(tensor.block());
    else
      counters_.allocated -= tensor.bytes();
    tensor = {};
  }

  std::optional<CachingAllocator> allocator_{};
  AllocatorCounters counters_{};
};

}  // namespace pipewright::models::replay
