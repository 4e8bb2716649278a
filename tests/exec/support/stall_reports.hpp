// Work that hangs until a stall is reported.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "pipewright/exec/rank/executor.hpp"

namespace pipewright::test {

struct StallReports {
  std::vector<std::string> reports;
  std::atomic<bool> let_go{false};

  void hang() const {
    while (!let_go)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  /// Returns options that report a stall after 0.3 s. This object must outlive the executor.
  exec::ExecutorOptions watched(exec::ExecutorOptions options) {
    options.stall = std::chrono::milliseconds(300);
    options.when_stalled = [this](const std::string& why) {
      reports.push_back(why);
      let_go = true;
    };
    return options;
  }
};

}  // namespace pipewright::test
