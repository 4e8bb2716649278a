#pragma once

// A vector for tables with millions of instructions. Linux backs its memory with 2-MiB huge pages
// where available: a fresh table then costs few page faults, and accesses far apart cause few TLB
// misses.

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace pipewright::plan {

template <class T>
struct LargePages {
  using value_type = T;
  static constexpr std::size_t page_bytes = std::size_t{2} << 20;

  LargePages() = default;
  template <class Other>
  LargePages(const LargePages<Other>& /*other*/) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < 2 * page_bytes)
      return std::allocator<T>().allocate(count);
    const std::size_t whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
    void* const memory = std::aligned_alloc(page_bytes, whole);
    if (memory == nullptr)
      throw std::bad_alloc();
    // A hint only: if the kernel rejects it, the pages are small.
    madvise(memory, whole, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (count * sizeof(T) < 2 * page_bytes)
      std::allocator<T>().deallocate(memory, count);
    else
      std::free(memory);
  }
  friend bool operator==(const LargePages&, const LargePages&) = default;
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace pipewright::plan
