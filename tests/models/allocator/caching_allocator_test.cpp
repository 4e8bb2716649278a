#include "pipewright/models/allocator/caching_allocator.hpp"

#include <random>
#include <vector>

#include "support/catch.hpp"

namespace caching_allocator_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using Block = CachingAllocator::Block;

constexpr std::int64_t mib = 1 << 20;

TEST_CASE("Sizes are rounded to 512 bytes, and segments to the sizes of their pool",
          "[plan][allocator]") {
  struct Case {
    std::int64_t bytes, allocated, reserved;
  };
  const Case given =
      GENERATE(Case{1, 512, 2 * mib}, Case{513, 1024, 2 * mib}, Case{mib, mib, 2 * mib},
               Case{mib + 1, mib + 512, 20 * mib}, Case{10 * mib - 512, 10 * mib - 512, 20 * mib},
               Case{10 * mib, 10 * mib, 10 * mib}, Case{11 * mib + 3, 12 * mib, 12 * mib},
               Case{10 * mib + 512, 10 * mib + 512, 12 * mib});
  CachingAllocator allocator;
  allocator.allocate(given.bytes);
  CHECK(allocator.counters().allocated == given.allocated);
  CHECK(allocator.counters().reserved == given.reserved);
}

TEST_CASE("A large block is not split for its last MiB", "[plan][allocator]") {
  CachingAllocator allocator;
  Block* whole = allocator.allocate(30 * mib);
  allocator.free(whole);
  Block* nearly = allocator.allocate(29 * mib);  // the remaining 1 MiB is not split off
  CHECK(CachingAllocator::size_of(nearly) == 30 * mib);
  allocator.free(nearly);
  Block* less = allocator.allocate(29 * mib - 512);
  CHECK(CachingAllocator::size_of(less) == 29 * mib - 512);
  CHECK(allocator.counters().inactive_split == mib + 512);
  CHECK(allocator.counters().reserved == 30 * mib);
}

TEST_CASE("The smallest sufficient block is used, and among equal ones the lowest",
          "[plan][allocator]") {
  CachingAllocator allocator;
  Block* large = allocator.allocate(40 * mib);
  Block* medium = allocator.allocate(20 * mib);
  Block* other = allocator.allocate(20 * mib);
  for (Block* block : {large, other, medium})
    allocator.free(block);
  CHECK(allocator.allocate(20 * mib) == medium);
  CHECK(allocator.allocate(20 * mib) == other);
  CHECK(allocator.counters().reserved == 80 * mib);
}

TEST_CASE("Free neighbors are merged into one block", "[plan][allocator]") {
  CachingAllocator allocator;
  allocator.free(allocator.allocate(60 * mib));
  Block* a = allocator.allocate(20 * mib);
  Block* b = allocator.allocate(20 * mib);
  Block* c = allocator.allocate(20 * mib);
  CHECK(allocator.counters().inactive_split == 0);
  allocator.free(a);
  allocator.free(c);
  CHECK(allocator.counters().inactive_split == 40 * mib);
  allocator.allocate(30 * mib);  // neither is large enough
  CHECK(allocator.counters().reserved == 90 * mib);
  allocator.free(b);
  CHECK(allocator.counters().inactive_split == 0);  // the whole segment is free
  allocator.allocate(60 * mib);
  CHECK(allocator.counters().reserved == 90 * mib);
}

TEST_CASE("Streams and pools share no blocks", "[plan][allocator]") {
  CachingAllocator allocator;
  allocator.free(allocator.allocate(16 * mib, 0));
  allocator.allocate(16 * mib, 1);
  CHECK(allocator.counters().reserved == 32 * mib);
  allocator.allocate(mib, 0);  // small pool, although a large block is free
  CHECK(allocator.counters().reserved == 34 * mib);
}

TEST_CASE("On a full device, whole cached segments are released", "[plan][allocator]") {
  CachingAllocator allocator({.device_bytes = 100 * mib});
  Block* split = allocator.allocate(20 * mib);
  allocator.free(split);
  split = allocator.allocate(4 * mib);  // keeps a segment of 20
  allocator.free(allocator.allocate(60 * mib));
  CHECK(allocator.allocate(70 * mib) != nullptr);
  CHECK(allocator.counters().retries == 1);
  CHECK(allocator.counters().reserved == 90 * mib);
  CHECK(allocator.counters().peak_reserved == 90 * mib);
  CHECK(allocator.allocate(18 * mib) == nullptr);  // 16 are free, in the segment of 20
}

TEST_CASE("Blocks above max_split_size are not split", "[plan][allocator]") {
  CachingAllocator allocator({.max_split = 32 * mib, .device_bytes = 100 * mib});
  Block* oversize = allocator.allocate(64 * mib);
  allocator.free(oversize);
  allocator.allocate(24 * mib);  // does not use it
  CHECK(allocator.counters().reserved == 88 * mib);
  CHECK(allocator.allocate(50 * mib) == oversize);  // within 20 MiB
  CHECK(allocator.counters().allocated == 88 * mib);
  allocator.free(oversize);
  CHECK(allocator.allocate(40 * mib) != nullptr);  // the block is too small, so it is released
                                                   // first
  CHECK(allocator.counters().reserved == 64 * mib);
  CHECK(allocator.counters().retries == 0);
}

TEST_CASE("Expandable segments grow by pages and have no holes between tensors",
          "[plan][allocator]") {
  CachingAllocator allocator({.expandable_segments = true});
  Block* a = allocator.allocate(30 * mib);
  CHECK(allocator.counters().reserved == 40 * mib);  // pages of 20 MiB
  Block* b = allocator.allocate(30 * mib);           // 10 of them are already mapped
  CHECK(allocator.counters().reserved == 60 * mib);
  allocator.free(b);
  Block* c = allocator.allocate(50 * mib);  // b's place, and one more page
  CHECK(allocator.counters().reserved == 80 * mib);
  allocator.free(a);
  CHECK(allocator.counters().inactive_split == 0);
  allocator.empty_cache();  // the page that only a used
  CHECK(allocator.counters().reserved == 60 * mib);
  allocator.allocate(30 * mib);  // into the gap
  CHECK(allocator.counters().reserved == 80 * mib);
  allocator.free(c);
  allocator.empty_cache();
  CHECK(allocator.counters().reserved == 40 * mib);
}

TEST_CASE("Allocated bytes never exceed reserved bytes", "[plan][allocator]") {
  const bool expandable = GENERATE(false, true);
  CachingAllocator allocator({.expandable_segments = expandable, .device_bytes = 4096 * mib});
  std::mt19937 random(7);
  std::vector<Block*> held;
  std::int64_t sum = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    if (held.size() > 40 || (!held.empty() && random() % 2 == 0)) {
      const std::size_t at = random() % held.size();
      sum -= CachingAllocator::size_of(held[at]);
      allocator.free(held[at]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (Block* block = allocator.allocate(1 + (1LL << random() % 27) + random() % 4096,
                                                 static_cast<int>(random() % 2))) {
      held.push_back(block);
      sum += CachingAllocator::size_of(block);
    }
    REQUIRE(allocator.counters().allocated == sum);
    REQUIRE(allocator.counters().reserved >= sum);
    REQUIRE(allocator.counters().reserved <= 4096 * mib);
  }
  for (Block* block : held)
    allocator.free(block);
  allocator.empty_cache();
  CHECK(allocator.counters().reserved == 0);
  CHECK(allocator.counters().inactive_split == 0);
}

}  // namespace caching_allocator_test
