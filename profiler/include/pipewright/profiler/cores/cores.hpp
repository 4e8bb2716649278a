#pragma once

// Threads that work at once or one alone, each on a core of its own.

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace pipewright::profiler {

class Cores {
 public:
  /// `prepare` is called first on each thread; what it returns lives as long as that.
  Cores(int count, const std::function<std::shared_ptr<void>(int core)>& prepare);
  ~Cores();
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;

  int count() const { return static_cast<int>(threads_.size()); }
  /// Runs `work` on all of them, begun at once, and returns when the last has done it. Throws what
  /// one of them threw.
  void together(const std::function<void(int core)>& work);
  /// The same on one, while the others sleep.
  void alone(int core, const std::function<void()>& work);

 private:
  struct Gate;
  void serve(int core, const std::function<std::shared_ptr<void>(int core)>& prepare);

  std::unique_ptr<Gate> gate_;
  const std::function<void(int core)>* work_ = nullptr;  // none: the end
  std::vector<std::exception_ptr> failures_;             // by core
  std::vector<std::thread> threads_;
};

}  // namespace pipewright::profiler
