#pragma once

// Runs work that consists of numbered parts on all cores.

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace pipewright::sim {

/// Calls `work(next)` once on each core. `next()` returns the number of its next part below
/// `count`, and nothing if none is left or a part has failed. Rethrows the exception of that part.
template <class Work>
void on_all_cores(std::size_t count, const Work& work) {
  std::atomic<std::size_t> first_left = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto next = [&]() -> std::optional<std::size_t> {
    const std::size_t part = first_left++;
    return part < count ? std::optional(part) : std::nullopt;
  };
  const auto guarded = [&] {
    try {
      work(next);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      first_left = count;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::thread::hardware_concurrency(); ++t)
    threads.emplace_back(guarded);
  guarded();
  for (std::thread& thread : threads)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
}

}  // namespace pipewright::sim
