#pragma once

// Tensors of a replay, which are an allocator's blocks.

#include "pipewright/models/allocator/caching_allocator.hpp"

namespace pipewright::models::replay {

struct OutOfMemory {};

using Tensor = CachingAllocator::Block*;

class Tape {
 public:
  explicit Tape(const AllocatorOptions& options) : allocator_(options) {}

  /// None of no bytes. Throws OutOfMemory.
  Tensor make(long long bytes, int stream = 0) {
    if (bytes <= 0)
      return nullptr;
    Tensor tensor = allocator_.allocate(bytes, stream);
    if (tensor == nullptr)
      throw OutOfMemory{};
    return tensor;
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
  const AllocatorCounters& counters() const { return allocator_.counters(); }

 private:
  void drop_one(Tensor& tensor) {
    if (tensor != nullptr)
      allocator_.free(tensor);
    tensor = nullptr;
  }

  CachingAllocator allocator_;
};

}  // namespace pipewright::models::replay
