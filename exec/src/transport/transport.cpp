#include "pipewright/exec/transport/transport.hpp"

#include <chrono>
#include <thread>

namespace pipewright::exec {

void Transport::wait_for_device(const std::function<bool()>& done, const std::string& /*where*/) {
  using Clock = std::chrono::steady_clock;
  // A thread that sleeps is some 60 microseconds late.
  for (const auto until = Clock::now() + std::chrono::milliseconds(2); Clock::now() < until;) {
    if (done())
      return;
    std::this_thread::yield();
  }
  while (!done()) {
    require_going();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace pipewright::exec
