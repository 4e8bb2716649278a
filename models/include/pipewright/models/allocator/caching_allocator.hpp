#pragma once

// A model of LibTorch's caching allocator for a CUDA device, without the device: the segments it
// reserves, the block that each tensor gets, and so how much it reserves beyond what is allocated.
// The policy is that of c10/cuda/CUDACachingAllocator.cpp (LibTorch 2.x). The driver chooses the
// addresses of segments, which break ties between blocks of equal size. Without a SegmentSource,
// addresses increase.

#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <vector>

namespace pipewright::models {

/// A source of device memory. It is notified of all segments except expandable ones.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  /// Returns the address of a new segment.
  virtual std::int64_t take(std::int64_t bytes, int stream) = 0;
  virtual void give_back(std::int64_t address, std::int64_t bytes, int stream) = 0;
};

/// Settings of PYTORCH_CUDA_ALLOC_CONF, and of the device.
struct AllocatorOptions {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  bool expandable_segments = false;
  std::int64_t max_split = unlimited;     // bytes; larger blocks are never split
  std::int64_t device_bytes = unlimited;  // limit for all segments together
  SegmentSource* source = nullptr;        // must outlive the allocator; null: addresses increase
};

struct AllocatorCounters {
  std::int64_t allocated = 0, peak_allocated = 0;
  std::int64_t reserved = 0, peak_reserved = 0;
  /// Reserved bytes in the free parts of segments that are partly in use, which emptying the cache
  /// cannot release. Expandable segments release them and have none.
  std::int64_t inactive_split = 0, peak_inactive_split = 0;
  int retries = 0;  // allocations retried after emptying the cache because the device was full
};

class CachingAllocator {
 public:
  struct Block;

  explicit CachingAllocator(const AllocatorOptions& options = {});
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Allocates `bytes` > 0. Returns null if the device has no room even after the cache was
  /// emptied.
  Block* allocate(std::int64_t bytes, int stream = 0);
  /// Returns the size of the block in bytes, which is at least the requested size.
  static std::int64_t size_of(const Block* block);
  static std::int64_t address_of(const Block* block);
  void free(Block* block);
  /// Releases unused segments, or unused pages of expandable ones.
  void empty_cache();
  const AllocatorCounters& counters() const { return counters_; }

 private:
  /// Free blocks sorted by stream, size and address. There are few, so a sorted vector is faster
  /// than a tree.
  class FreeBlocks {
   public:
    using Iterator = std::vector<Block*>::iterator;
    Iterator begin() { return blocks_.begin(); }
    Iterator end() { return blocks_.end(); }
    Iterator lower_bound(const Block* key);
    void insert(Block* block);
    void erase(Block* block);
    void erase(Iterator at) { blocks_.erase(at); }

   private:
    std::vector<Block*> blocks_;
  };
  struct Pool {
    bool is_small = false;
    FreeBlocks free{};
    std::map<int, Block*> expandable{};  // first block of each stream's segment
  };

  Block* make_block(Pool& pool, int stream, std::int64_t address, std::int64_t size);
  void remove_block(Block* block);
  Block* find_free(Pool& pool, std::int64_t size, int stream);
  Block* new_segment(Pool& pool, std::int64_t size, int stream);
  Block* taken_segment(Pool& pool, std::int64_t size, int stream);
  Block* expanded(Pool& pool, std::int64_t size, int stream);
  bool map_pages(Block* block, std::int64_t size);
  void unmap_pages(Block* block);
  Block* cut(Block* block, std::int64_t size);
  void join(Block* block, Block* neighbor);
  bool should_split(const Block* block, std::int64_t size) const;
  bool give_back_oversize(Pool& pool, std::int64_t size, int stream);
  void give_back(Block* block);
  void empty(Pool& pool);
  bool reserve(std::int64_t bytes);
  void set_inactive(std::int64_t change);

  AllocatorOptions options_;
  AllocatorCounters counters_{};
  Pool small_{.is_small = true}, large_{};
  std::int64_t next_address_ = 0;
  std::list<Block> blocks_;     // all blocks ever created
  std::vector<Block*> unused_;  // blocks of that list to reuse
};

}  // namespace pipewright::models
