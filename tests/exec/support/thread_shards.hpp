// Tensor-parallel ranks as threads of a test, which pass tensors by reference.
#pragma once

#include <ATen/Parallel.h>

#include <atomic>
#include <barrier>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "pipewright/exec/training/shard_group.hpp"

namespace pipewright::test {

class ThreadShards {
 public:
  explicit ThreadShards(int count) : meeting_(count), handed_in_(static_cast<std::size_t>(count)) {}

  /// One rank's view of the group.
  class Member final : public exec::TensorParallelGroup {
   public:
    Member(ThreadShards& all, int index) : all_(all), index_(static_cast<std::size_t>(index)) {}

    exec::Tensors all_to_all(const exec::Tensors& parts) override {
      all_.handed_in_[index_] = parts;
      all_.meet();
      exec::Tensors own;
      for (const exec::Tensors& from : all_.handed_in_)
        own.push_back(from.at(index_));
      all_.meet();  // all have read
      return own;
    }

   private:
    ThreadShards& all_;
    std::size_t index_;
  };

  /// Ends the other ranks when one ends with an exception.
  void fail() {
    failed_ = true;
    meeting_.arrive_and_drop();
  }

 private:
  void meet() {
    meeting_.arrive_and_wait();
    if (failed_)
      throw std::runtime_error("another shard failed");
  }

  std::barrier<> meeting_;
  std::atomic<bool> failed_ = false;
  std::vector<exec::Tensors> handed_in_;
};

/// Runs `body` for each rank, on its own thread as a real rank would, and returns the results.
template <class Body>
auto run_shards(int count, int groups, const Body& body) {
  using Result = decltype(body(exec::TensorParallelPlace{}));
  ThreadShards shards(count);
  std::vector<Result> results(static_cast<std::size_t>(count));
  std::vector<std::exception_ptr> errors(results.size());
  std::vector<std::thread> threads;
  for (int index = 0; index < count; ++index)
    threads.emplace_back([&, index] {
      at::set_num_threads(1);
      ThreadShards::Member member(shards, index);
      try {
        results[static_cast<std::size_t>(index)] =
            body(exec::TensorParallelPlace{.index = index,
                                           .count = count,
                                           .groups = groups,
                                           .group = count > 1 ? &member : nullptr});
      } catch (...) {
        errors[static_cast<std::size_t>(index)] = std::current_exception();
        shards.fail();
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  for (const std::exception_ptr& error : errors)
    if (error)
      std::rethrow_exception(error);
  return results;
}

}  // namespace pipewright::test
