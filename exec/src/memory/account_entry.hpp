#pragma once

// The two numbers behind an account of memory, which several threads change.

#include <atomic>
#include <cstdint>

namespace pipewright::exec {

/// What a MemoryAccount counts. Never freed: a tensor may outlive its account.
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
};

}  // namespace pipewright::exec
