#include "activity/buffer_pool.hpp"

#include <algorithm>
#include <utility>

namespace pipewright::profiler {

BufferPool::BufferPool(std::size_t size, int ready, int most)
    : size_(size), most_(static_cast<std::size_t>(most)) {
  for (int buffer = 0; buffer < ready; ++buffer)
    free_.push_back(make());
}

BufferPool::~BufferPool() {
  for (auto& buffer : all_)
    if (std::find(out_.begin(), out_.end(), buffer.get()) != out_.end())
      static_cast<void>(buffer.release());
}

std::uint8_t* BufferPool::make() {
  // Writing zeros also makes the pages resident. New memory is aligned for any number.
  return all_.emplace_back(std::make_unique<std::uint8_t[]>(size_)).get();
}

std::uint8_t* BufferPool::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (all_.size() >= most_)
      return nullptr;
    ++late_;
    return out_.emplace_back(make());
  }
  out_.push_back(free_.back());
  free_.pop_back();
  return out_.back();
}

void BufferPool::fill(std::uint8_t* buffer, std::size_t used) {
  const std::lock_guard lock(mutex_);
  if (std::erase(out_, buffer) > 0)
    filled_.push_back({buffer, std::min(used, size_)});
}

std::vector<BufferPool::Filled> BufferPool::filled() {
  const std::lock_guard lock(mutex_);
  const std::deque<Filled> some = std::exchange(filled_, {});
  return {some.begin(), some.end()};
}

void BufferPool::give_back(const Filled& buffer) {
  std::fill_n(buffer.data, size_, std::uint8_t{0});
  const std::lock_guard lock(mutex_);
  free_.push_back(buffer.data);
}

std::uint64_t BufferPool::late() {
  const std::lock_guard lock(mutex_);
  return std::exchange(late_, 0);
}

std::uint64_t BufferPool::out() {
  const std::lock_guard lock(mutex_);
  return out_.size();
}

}  // namespace pipewright::profiler
