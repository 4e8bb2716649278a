#include "pipewright/exec/transport/transport.hpp"

#include <chrono>
#include <thread>

namespace pipewright::exec {

void Transport::wait_for_device(const std::function<bool()>& done, const std::string& /*where*/) {
  using Clock = std::chrono::steady_clock;
  // A thread that sleeps wakes up some 60 microseconds late.
  const auto busy_until = Clock::now() + std::chrono::milliseconds(2);
  while (!done()) {
    if (Clock::now() < busy_until) {
      std::this_thread::yield();
      continue;
    }
    require_going();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  require_going();  // work that was dropped because the job has ended is done, too
}

}  // namespace pipewright::exec
