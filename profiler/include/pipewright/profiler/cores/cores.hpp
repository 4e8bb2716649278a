#pragma once

// Threads that run work all at once or one alone, each on its own core.

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace pipewright::profiler {

class Cores {
 public:
  /// Calls `prepare` first on each thread. Its result lives as long as the thread.
  Cores(int count, const std::function<std::shared_ptr<void>(int core)>& prepare);
  ~Cores();
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;

  int count() const { return static_cast<int>(threads_.size()); }
  /// Runs `work` on all threads, started at once, and returns when the last has finished. Throws
  /// what one of them threw.
  void together(const std::function<void(int core)>& work);
  /// Runs `work` on one thread while the others sleep. Throws what it threw.
  void alone(int core, const std::function<void()>& work);

 private:
  struct Gate;
  void serve(int core, const std::function<std::shared_ptr<void>(int core)>& prepare);

  std::unique_ptr<Gate> gate_;
  const std::function<void(int core)>* work_ = nullptr;  // null ends the threads
  std::vector<std::exception_ptr> failures_;             // by core
  std::vector<std::thread> threads_;
};

}  // namespace pipewright::profiler
