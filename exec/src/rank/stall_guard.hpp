#pragma once

// Notices, in a process that holds all ranks, that they no longer get any further.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "job/report.hpp"

namespace pipewright::exec {

class StallGuard {
 public:
  /// Calls `beats` now and then on a thread of its own; nothing comes back while the ranks rest.
  StallGuard(std::chrono::milliseconds stall, std::function<std::vector<Beat>()> beats,
             std::function<void(const std::string& why)> when_stalled);
  ~StallGuard();

 private:
  void watch();

  std::chrono::milliseconds stall_;
  std::function<std::vector<Beat>()> beats_;
  std::function<void(const std::string& why)> when_stalled_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace pipewright::exec
