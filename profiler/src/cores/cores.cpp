#include "pipewright/profiler/cores/cores.hpp"

#include <barrier>
#include <utility>

namespace pipewright::profiler {

struct Cores::Gate {
  std::barrier<> barrier;
};

Cores::Cores(int count, const std::function<std::shared_ptr<void>(int core)>& prepare)
    : gate_(new Gate{std::barrier<>(count + 1)}), failures_(static_cast<std::size_t>(count)) {
  for (int core = 0; core < count; ++core)
    threads_.emplace_back([this, core, prepare] { serve(core, prepare); });
}

Cores::~Cores() {
  work_ = nullptr;
  gate_->barrier.arrive_and_wait();
  for (std::thread& thread : threads_)
    thread.join();
}

/// Runs a thread: each turn lies between two meetings at the gate.
void Cores::serve(int core, const std::function<std::shared_ptr<void>(int core)>& prepare) {
  const std::shared_ptr<void> prepared = prepare(core);
  for (;;) {
    gate_->barrier.arrive_and_wait();
    if (work_ == nullptr)
      return;
    try {
      (*work_)(core);
    } catch (...) {
      failures_[static_cast<std::size_t>(core)] = std::current_exception();
    }
    gate_->barrier.arrive_and_wait();
  }
}

void Cores::together(const std::function<void(int core)>& work) {
  work_ = &work;
  gate_->barrier.arrive_and_wait();
  gate_->barrier.arrive_and_wait();
  for (std::exception_ptr& failure : failures_)
    if (failure)
      std::rethrow_exception(std::exchange(failure, nullptr));
}

void Cores::alone(int core, const std::function<void()>& work) {
  together([&](int each) {
    if (each == core)
      work();
  });
}

}  // namespace pipewright::profiler
