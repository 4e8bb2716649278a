#include "stall_guard.hpp"

#include <algorithm>

#include "cpu/unpinned_thread.hpp"
#include "job/stall.hpp"

namespace pipewright::exec {
namespace {

using Clock = std::chrono::steady_clock;

long moves_of(const std::vector<Heartbeat>& beats) {
  long moves = 0;
  for (const Heartbeat& beat : beats)
    moves += beat.moves;
  return moves;
}

}  // namespace

StallGuard::StallGuard(std::chrono::milliseconds stall,
                       std::function<std::vector<Heartbeat>()> beats,
                       std::function<void(const std::string& why)> when_stalled)
    : stall_(stall), beats_(std::move(beats)), when_stalled_(std::move(when_stalled)) {
  thread_ = unpinned_thread([this] { watch(); });
}

StallGuard::~StallGuard() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StallGuard::watch() {
  using std::chrono::milliseconds;
  const auto look_every = std::clamp(stall_ / 8, milliseconds(1), milliseconds(500));
  long last = -1;
  auto since = Clock::now();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, look_every, [&] { return ended_; })) {
    const std::vector<Heartbeat> beats = beats_();
    const long moves = moves_of(beats);
    if (beats.empty() || moves != last) {
      last = moves;
      since = Clock::now();
    } else if (Clock::now() - since >= stall_) {
      const std::string why = stall_report(beats, stall_);
      if (!why.empty())
        return when_stalled_(why);
    }
  }
}

}  // namespace pipewright::exec
