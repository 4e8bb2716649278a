#include "pipewright/models/allocator/caching_allocator.hpp"

#include <algorithm>
#include <tuple>

namespace pipewright::models {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t least_block = 512;
constexpr std::int64_t largest_small = mebibyte;
constexpr std::int64_t small_segment = 2 * mebibyte;
constexpr std::int64_t large_segment = 20 * mebibyte;
constexpr std::int64_t least_own_segment = 10 * mebibyte;
constexpr std::int64_t large_round = 2 * mebibyte;
/// The address range reserved for an expandable segment.
constexpr std::int64_t address_space = 1LL << 48;

std::int64_t rounded_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

std::int64_t segment_size(std::int64_t size) {
  if (size <= largest_small)
    return small_segment;
  return size < least_own_segment ? large_segment : rounded_up(size, large_round);
}

}  // namespace

struct CachingAllocator::Block {
  Pool* pool = nullptr;
  int stream = 0;
  std::int64_t address = 0;
  std::int64_t size = 0;
  bool allocated = false;
  bool mapped = true;  // in an expandable segment: has physical memory
  bool expandable = false;
  Block* before = nullptr;  // neighbors in the same segment
  Block* behind = nullptr;
  bool is_split() const { return before != nullptr || behind != nullptr; }
  bool is_free() const { return !allocated && mapped; }
};

CachingAllocator::FreeBlocks::Iterator CachingAllocator::FreeBlocks::lower_bound(const Block* key) {
  return std::lower_bound(blocks_.begin(), blocks_.end(), key, [](const Block* a, const Block* b) {
    return std::tie(a->stream, a->size, a->address) < std::tie(b->stream, b->size, b->address);
  });
}

void CachingAllocator::FreeBlocks::insert(Block* block) {
  blocks_.insert(lower_bound(block), block);
}

void CachingAllocator::FreeBlocks::erase(Block* block) { blocks_.erase(lower_bound(block)); }

CachingAllocator::CachingAllocator(const AllocatorOptions& options) : options_(options) {}
CachingAllocator::~CachingAllocator() = default;

std::int64_t CachingAllocator::size_of(const Block* block) { return block->size; }

std::int64_t CachingAllocator::address_of(const Block* block) { return block->address; }

CachingAllocator::Block* CachingAllocator::allocate(std::int64_t bytes, int stream) {
  const std::int64_t size = rounded_up(std::max(bytes, least_block), least_block);
  Pool& pool = size <= largest_small ? small_ : large_;
  Block* block = find_free(pool, size, stream);
  if (block == nullptr)
    block = new_segment(pool, size, stream);
  if (block == nullptr)
    return nullptr;
  const bool was_split = block->is_split() && !block->expandable;
  if (was_split)
    set_inactive(-block->size);
  if (should_split(block, size)) {
    Block* rest = cut(block, size);
    pool.free.insert(rest);
    if (!block->expandable)
      set_inactive(rest->size);
  }
  block->allocated = true;
  counters_.allocated += block->size;
  counters_.peak_allocated = std::max(counters_.peak_allocated, counters_.allocated);
  return block;
}

void CachingAllocator::free(Block* block) {
  block->allocated = false;
  counters_.allocated -= block->size;
  for (Block* neighbor : {block->before, block->behind})
    if (neighbor != nullptr && neighbor->is_free()) {
      block->pool->free.erase(neighbor);
      if (!block->expandable)
        set_inactive(-neighbor->size);
      join(block, neighbor);
    }
  block->pool->free.insert(block);
  if (block->is_split() && !block->expandable)
    set_inactive(block->size);
}

void CachingAllocator::empty_cache() {
  empty(large_);
  empty(small_);
}

CachingAllocator::Block* CachingAllocator::make_block(Pool& pool, int stream, std::int64_t address,
                                                      std::int64_t size) {
  if (unused_.empty())
    unused_.push_back(&blocks_.emplace_back());
  Block* block = unused_.back();
  unused_.pop_back();
  *block = {.pool = &pool, .stream = stream, .address = address, .size = size};
  return block;
}

void CachingAllocator::remove_block(Block* block) { unused_.push_back(block); }

/// Returns the best fit and, among equal sizes, the lowest address. In an expandable segment, a
/// block's size includes the space into which it can grow.
CachingAllocator::Block* CachingAllocator::find_free(Pool& pool, std::int64_t size, int stream) {
  Block key{.stream = stream, .size = size};
  auto at = pool.free.lower_bound(&key);
  if (at == pool.free.end() || (*at)->stream != stream)
    return nullptr;
  const auto can_grow_to = [](const Block* block) {
    const Block* behind = block->behind;
    return block->size + (behind != nullptr && !behind->mapped ? behind->size : 0);
  };
  for (auto next = std::next(at);
       (*at)->expandable && next != pool.free.end() && (*next)->stream == stream &&
       can_grow_to(*next) < can_grow_to(*at);
       ++next)
    at = next;
  Block* block = *at;
  if (size < options_.max_split ? block->size >= options_.max_split
                                : block->size >= size + large_segment)
    return nullptr;
  pool.free.erase(at);
  return block;
}

/// Reserves a new segment. If the device is full, empties the cache first.
CachingAllocator::Block* CachingAllocator::new_segment(Pool& pool, std::int64_t size, int stream) {
  if (Block* block = taken_segment(pool, size, stream))
    return block;
  if (give_back_oversize(pool, size, stream))
    if (Block* block = taken_segment(pool, size, stream))
      return block;
  empty_cache();
  ++counters_.retries;
  return taken_segment(pool, size, stream);
}

CachingAllocator::Block* CachingAllocator::taken_segment(Pool& pool, std::int64_t size,
                                                         int stream) {
  if (options_.expandable_segments)
    return expanded(pool, size, stream);
  const std::int64_t segment = segment_size(size);
  if (!reserve(segment))
    return nullptr;
  if (options_.source != nullptr)
    return make_block(pool, stream, options_.source->take(segment, stream), segment);
  Block* block = make_block(pool, stream, next_address_, segment);
  next_address_ += segment;
  return block;
}

/// Returns the first place in the stream's segment with room for `size`. Any part of it that has no
/// memory yet gets pages.
CachingAllocator::Block* CachingAllocator::expanded(Pool& pool, std::int64_t size, int stream) {
  Block*& first = pool.expandable[stream];
  if (first == nullptr) {
    first = make_block(pool, stream, next_address_, address_space);
    next_address_ += address_space;
    first->expandable = true;
    first->mapped = false;
  }
  const auto room_from = [](const Block* block) {
    std::int64_t room = 0;
    for (; block != nullptr && !block->allocated; block = block->behind)
      room += block->size;
    return room;
  };
  Block* block = first;
  while (block != nullptr && room_from(block) < size)
    block = block->behind;
  if (block == nullptr)
    return nullptr;
  const auto join_free = [&] {
    if (block->behind != nullptr && block->behind->is_free()) {
      pool.free.erase(block->behind);
      join(block, block->behind);
    }
  };
  if (block->mapped)
    pool.free.erase(block);
  else if (!map_pages(block, std::min(size, block->size)))
    return nullptr;
  join_free();
  while (block->size < size) {  // the space after a free block has no memory
    Block* behind = block->behind;
    if (!map_pages(behind, std::min(size - block->size, behind->size))) {
      pool.free.insert(block);
      return nullptr;
    }
    join(block, behind);
    join_free();
  }
  return block;
}

/// Maps pages for the first `size` bytes of an unmapped block. The rest stays unmapped.
bool CachingAllocator::map_pages(Block* block, std::int64_t size) {
  const std::int64_t page = block->pool->is_small ? small_segment : large_segment;
  const std::int64_t mapped = std::min(rounded_up(size, page), block->size);
  if (!reserve(mapped))
    return false;
  if (mapped < block->size)
    cut(block, mapped)->mapped = false;
  block->mapped = true;
  return true;
}

/// Unmaps the pages that lie completely within a free block.
void CachingAllocator::unmap_pages(Block* block) {
  const std::int64_t page = block->pool->is_small ? small_segment : large_segment;
  const std::int64_t origin = block->pool->expandable[block->stream]->address;
  const std::int64_t from = rounded_up(block->address - origin, page) + origin;
  const std::int64_t to = (block->address + block->size - origin) / page * page + origin;
  if (from >= to)
    return;
  block->pool->free.erase(block);
  if (to < block->address + block->size)
    block->pool->free.insert(cut(block, to - block->address));
  if (from > block->address) {
    Block* within = cut(block, from - block->address);
    block->pool->free.insert(block);
    block = within;
  }
  block->mapped = false;
  counters_.reserved -= block->size;
  for (Block* neighbor : {block->before, block->behind})
    if (neighbor != nullptr && !neighbor->mapped)
      join(block, neighbor);
}

/// Cuts the block after its first `size` bytes. Returns the rest, which is free but not in a list.
CachingAllocator::Block* CachingAllocator::cut(Block* block, std::int64_t size) {
  Block* rest = make_block(*block->pool, block->stream, block->address + size, block->size - size);
  rest->expandable = block->expandable;
  rest->mapped = block->mapped;
  rest->before = block;
  rest->behind = block->behind;
  if (rest->behind != nullptr)
    rest->behind->before = rest;
  block->behind = rest;
  block->size = size;
  return rest;
}

/// Merges a neighbor, which is not in a list, into `block`.
void CachingAllocator::join(Block* block, Block* neighbor) {
  if (neighbor == block->before) {
    block->address = neighbor->address;
    block->before = neighbor->before;
    if (block->before != nullptr)
      block->before->behind = block;
    if (const auto first = block->pool->expandable.find(block->stream);
        first != block->pool->expandable.end() && first->second == neighbor)
      first->second = block;
  } else {
    block->behind = neighbor->behind;
    if (block->behind != nullptr)
      block->behind->before = block;
  }
  block->size += neighbor->size;
  remove_block(neighbor);
}

bool CachingAllocator::should_split(const Block* block, std::int64_t size) const {
  const std::int64_t rest = block->size - size;
  if (block->pool->is_small || options_.expandable_segments)
    return rest >= least_block;
  return size < options_.max_split && rest > largest_small;
}

/// Releases free oversize blocks of the stream: the smallest that is large enough, or else the
/// largest ones. Returns true if that is as much as needed.
bool CachingAllocator::give_back_oversize(Pool& pool, std::int64_t size, int stream) {
  if (options_.max_split == AllocatorOptions::unlimited)
    return false;
  Block key{.stream = stream, .size = std::max(size, options_.max_split)};
  auto at = pool.free.lower_bound(&key);
  if (at != pool.free.end() && (*at)->stream == stream) {
    give_back(*at);
    return true;
  }
  std::int64_t given = 0;
  while (given < key.size && at != pool.free.begin()) {
    Block* const block = *std::prev(at);
    if (block->size < options_.max_split || block->stream != stream)
      break;
    given += block->size;
    give_back(block);
    at = pool.free.lower_bound(&key);
  }
  return given >= key.size;
}

void CachingAllocator::give_back(Block* block) {
  counters_.reserved -= block->size;
  if (options_.source != nullptr)
    options_.source->give_back(block->address, block->size, block->stream);
  block->pool->free.erase(block);
  remove_block(block);
}

void CachingAllocator::empty(Pool& pool) {
  const std::vector<Block*> free(pool.free.begin(), pool.free.end());
  for (Block* block : free)
    if (block->expandable)
      unmap_pages(block);
    else if (!block->is_split())
      give_back(block);
}

bool CachingAllocator::reserve(std::int64_t bytes) {
  if (bytes > options_.device_bytes - counters_.reserved)
    return false;
  counters_.reserved += bytes;
  counters_.peak_reserved = std::max(counters_.peak_reserved, counters_.reserved);
  return true;
}

void CachingAllocator::set_inactive(std::int64_t change) {
  counters_.inactive_split += change;
  counters_.peak_inactive_split = std::max(counters_.peak_inactive_split, counters_.inactive_split);
}

}  // namespace pipewright::models
