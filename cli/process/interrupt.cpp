#include "process/interrupt.hpp"

#include <csignal>

namespace pipewright::cli {
namespace {

std::atomic<bool> flag{false};
std::atomic<bool> call_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free,
              "a signal handler may only touch such a flag");

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { flag.store(true); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const std::atomic<bool>& interrupted() { return flag; }

void catch_calls() {
  struct sigaction action {};
  action.sa_handler = [](int) { call_flag.store(true); };
  sigaction(SIGUSR1, &action, nullptr);
}

bool was_called() { return call_flag.exchange(false); }

}  // namespace pipewright::cli
