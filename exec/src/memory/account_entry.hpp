#pragma once

// The counters of a memory account, which several threads change, and the account's observer.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "pipewright/exec/memory/memory_meter.hpp"

namespace pipewright::exec {

/// The counters of a MemoryAccount. Never freed, because a tensor may outlive its account.
struct AccountEntry {
  std::atomic<std::int64_t> held{0};
  std::atomic<std::int64_t> peak{0};

  void add(std::int64_t size) {
    const auto now = held.fetch_add(size, std::memory_order_relaxed) + size;
    auto before = peak.load(std::memory_order_relaxed);
    while (now > before && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
    }
  }
  void subtract(std::int64_t size) { held.fetch_sub(size, std::memory_order_relaxed); }

  /// Counts a tensor's allocation and reports it to the observer.
  void take(const void* data, std::int64_t size) {
    add(size);
    tell({data, size});
  }
  /// Counts a tensor's release and reports it to the observer.
  void let_go(const void* data, std::int64_t size) {
    tell({data, -size});
    subtract(size);
  }

  void follow(AllocationObserver by) {
    const std::lock_guard lock(mutex_);
    observer_ = std::move(by);
    is_followed_.store(observer_ != nullptr, std::memory_order_release);
  }

 private:
  void tell(const AllocationEvent& event) {
    if (!is_followed_.load(std::memory_order_acquire))
      return;
    const std::lock_guard lock(mutex_);
    if (observer_)
      observer_(event);
  }

  std::atomic<bool> is_followed_{false};
  std::mutex mutex_;
  AllocationObserver observer_;
};

}  // namespace pipewright::exec
