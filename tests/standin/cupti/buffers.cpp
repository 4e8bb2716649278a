#include "buffers.hpp"

#include <cstring>
#include <thread>
#include <utility>

namespace pipewright::standin {

void Buffers::behave(const Behavior& behavior) {
  const std::lock_guard lock(mutex_);
  behavior_ = behavior;
  dropped_ = 0;
}

void Buffers::lend(CUpti_BuffersCallbackRequestFunc wanted,
                   CUpti_BuffersCallbackCompleteFunc filled) {
  const std::lock_guard lock(mutex_);
  wanted_ = wanted;
  filled_ = filled;
}

void Buffers::put(const Bytes& record) {
  const std::lock_guard lock(mutex_);
  if (behavior_.drop > 0 || !make_room(record.size())) {
    behavior_.drop -= behavior_.drop > 0 ? 1 : 0;
    ++dropped_;
    return;
  }
  current_.records.begins.push_back(current_.used);
  std::memcpy(current_.data + current_.used, record.data(), record.size());
  current_.used += record.size();
}

void Buffers::put(const Bytes& records, const std::vector<std::size_t>& begins) {
  const std::lock_guard lock(mutex_);
  close();
  if (!make_room(records.size())) {
    dropped_ += begins.size();
    return;
  }
  std::memcpy(current_.data, records.data(), records.size());
  current_.used = records.size();
  current_.records.begins = begins;
  close();
}

/// Makes room for a record. As in the real CUPTI, a buffer is requested when the first record needs
/// it.
bool Buffers::make_room(std::size_t size) {
  if (current_.data != nullptr && current_.size - current_.used >= size)
    return true;
  close();
  if (wanted_ == nullptr)
    return false;
  std::size_t most_records = 0;
  wanted_(&current_.data, &current_.size, &most_records);
  return current_.data != nullptr && current_.size >= size;
}

void Buffers::close() {
  if (current_.data == nullptr)
    return;
  current_.records.end = current_.used;
  if (behavior_.garbage && current_.size - current_.used >= 64) {
    std::memset(current_.data + current_.used, 0xEE, 64);
    current_.used += 64;
  }
  if (behavior_.cut)
    current_.used -= 4;
  full_.push_back(std::exchange(current_, {}));
}

void Buffers::flush() {
  std::vector<Buffer> now;
  bool on_own_thread = false;
  {
    const std::lock_guard lock(mutex_);
    close();
    on_own_thread = behavior_.late;
    now =
        behavior_.late ? std::exchange(late_, std::exchange(full_, {})) : std::exchange(full_, {});
    if (behavior_.missing)
      for (Buffer& buffer : std::exchange(now, {}))
        never_.push_back(std::move(buffer));
    for (const Buffer& buffer : now)
      records_[buffer.data] = buffer.records;
  }
  if (on_own_thread)
    std::thread([&] { hand_back(std::move(now)); }).join();
  else
    hand_back(std::move(now));
}

void Buffers::hand_back(std::vector<Buffer> buffers) {
  for (const Buffer& buffer : buffers)
    filled_(nullptr, 0, buffer.data, buffer.size, buffer.used);
}

std::size_t Buffers::take_dropped() {
  const std::lock_guard lock(mutex_);
  return std::exchange(dropped_, 0);
}

const Records* Buffers::records_in(const std::uint8_t* buffer) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(buffer);
  return found == records_.end() ? nullptr : &found->second;
}

}  // namespace pipewright::standin
