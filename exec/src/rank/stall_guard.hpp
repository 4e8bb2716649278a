#pragma once

// Detects a stall of all ranks in a process that runs all of them.

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
  /// Calls `beats` regularly on its own thread; it returns an empty list while no pass runs.
  StallGuard(std::chrono::milliseconds stall, std::function<std::vector<Heartbeat>()> beats,
             std::function<void(const std::string& why)> when_stalled);
  ~StallGuard();

 private:
  void watch();

  std::chrono::milliseconds stall_;
  std::function<std::vector<Heartbeat>()> beats_;
  std::function<void(const std::string& why)> when_stalled_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace pipewright::exec
