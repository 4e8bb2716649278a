#pragma once

// LibTorch's caching allocator of a CUDA device, without the device: which segments it takes, which
// block of them each tensor gets, and so how much more it reserves than is allocated. The policy is
// that of c10/cuda/CUDACachingAllocator.cpp (LibTorch 2.x). Where segments lie is the driver's
// choice, which matters where blocks are as large: without one, addresses rise.

#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <vector>

namespace pipewright::models {

/// What gives a device's memory; hears of all segments but expandable ones.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  /// The address of a new segment.
  virtual std::int64_t take(std::int64_t bytes, int stream) = 0;
  virtual void give_back(std::int64_t address, std::int64_t bytes, int stream) = 0;
};

/// PYTORCH_CUDA_ALLOC_CONF, and the device.
struct AllocatorOptions {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  bool expandable_segments = false;
  std::int64_t max_split = unlimited;     // bytes; larger blocks are never split
  std::int64_t device_bytes = unlimited;  // that segments may take together
  SegmentSource* source = nullptr;        // outlives the allocator; none: addresses rise
};

struct AllocatorCounters {
  std::int64_t allocated = 0, peak_allocated = 0;
  std::int64_t reserved = 0, peak_reserved = 0;
  /// Of the reserved: free parts of segments that are in use, which emptying the cache leaves;
  /// expandable segments give them back and have none.
  std::int64_t inactive_split = 0, peak_inactive_split = 0;
  int retries = 0;  // after the cache was emptied, as the device was full
};

class CachingAllocator {
 public:
  struct Block;

  explicit CachingAllocator(const AllocatorOptions& options = {});
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Of `bytes` > 0; null where the device has no room, with the cache emptied.
  Block* allocate(std::int64_t bytes, int stream = 0);
  /// Bytes that the block has: at least as many as were asked for.
  static std::int64_t size_of(const Block* block);
  static std::int64_t address_of(const Block* block);
  void free(Block* block);
  /// Gives back segments, of expandable ones pages, that nobody uses.
  void empty_cache();
  const AllocatorCounters& counters() const { return counters_; }

 private:
  /// By stream, size and address. There are few, so that a sorted row is quicker than a tree.
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
    std::map<int, Block*> expandable{};  // by stream: the first block of its segment
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
  void join(Block* block, Block* neighbour);
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
  std::list<Block> blocks_;     // all that there ever were
  std::vector<Block*> unused_;  // of these
};

}  // namespace pipewright::models
