#pragma once

// Tensors of a replay: blocks of an allocator, or only their sizes, which takes a hundredth of the
// time and gives the allocated bytes.

#include <algorithm>
#include <cstddef>
#include <optional>

#include "pipewright/models/allocator/caching_allocator.hpp"

namespace pipewright::models::replay {

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): no tensor, like a null pointer
  explicit Tensor(CachingAllocator::Block* block)
      : block_(block), bytes_(block == nullptr ? 0 : 1) {}
  explicit Tensor(long long bytes) : bytes_(bytes) {}

  CachingAllocator::Block* block() const { return block_; }
  long long bytes() const { return bytes_; }
  friend bool operator==(const Tensor& tensor, std::nullptr_t) { return tensor.bytes_ == 0; }

 private:
  CachingAllocator::Block* block_ = nullptr;
  long long bytes_ = 0;  // for a block only 0 or 1
};

/// The quantity that a replay counts: the bytes of tensors, or the bytes reserved by an allocator
/// with unlimited memory.
enum class Counted { Allocated, Reserved };

class Tape {
 public:
  explicit Tape(Counted counted) {
    if (counted == Counted::Reserved)
      allocator_.emplace();
  }

  /// Allocates a tensor. Returns no tensor for 0 bytes.
  Tensor make(long long bytes, int stream = 0) {
    if (bytes <= 0)
      return {};
    if (!allocator_)
      return counted(bytes);
    return Tensor(allocator_->allocate(bytes, stream));
  }
  /// Frees the tensors that exist, in this order.
  template <class... Tensors>
  void drop(Tensors&... tensors) {
    (drop_one(tensors), ...);
  }
  /// Allocates and frees a temporary tensor of a kernel.
  void touch(long long bytes) {
    Tensor tensor = make(bytes);
    drop(tensor);
  }
  /// Returns the counters. Without an allocator `reserved` stays 0.
  const AllocatorCounters& counters() const {
    return allocator_ ? allocator_->counters() : counters_;
  }

 private:
  Tensor counted(long long bytes) {
    constexpr long long round = 512;  // the allocator's rounding
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
