// A rank that is really slowed down is named; none is named if the whole machine is busy.

#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "cli/support/program.hpp"
#include "support/catch.hpp"

namespace slow_rank_test {

using namespace pipewright;
using namespace std::chrono_literals;
using test::Running;

/// Returns two ranks whose steps take some tenths of a second, each computing about half of it.
std::vector<std::string> training(const std::string& steps) {
  return test::small_gpt(
      "train", {"--set", "model.hidden=256", "--set", "model.sequence=64", "--set",
                "training.steps=" + steps, "--set", "training.microbatch_size=4", "--processes"});
}

TEST_CASE("A rank that is stopped most of the time is reported as slow within ten steps",
          "[cli][slow]") {
  const Running job(training("40"));
  const auto said = [&](const std::string& words) {
    return job.err().find(words) != std::string::npos;
  };
  const auto deadline = std::chrono::steady_clock::now() + 120s;
  while (!said("step 16/40") && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(5ms);
  REQUIRE(job.children().size() == 2);
  const pid_t slowed = job.children().at(1);
  while (!said("rank 1 is slow") && !said("step 40/40") &&
         std::chrono::steady_clock::now() < deadline) {
    kill(slowed, SIGSTOP);
    std::this_thread::sleep_for(120ms);
    kill(slowed, SIGCONT);
    std::this_thread::sleep_for(20ms);
  }
  const auto result = job.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  const auto named = result.err.find("rank 1 is slow: in each of ");
  REQUIRE(named != std::string::npos);
  CHECK(named < result.err.find("step 28/40"));
  CHECK(result.err.find("rank 0 is slow") == std::string::npos);
  CHECK(result.err.find("rank 1 is no longer slow") != std::string::npos);
}

TEST_CASE("On a machine that other processes keep busy no rank is reported as slow",
          "[cli][slow]") {
  std::atomic<bool> over{false};
  std::vector<std::thread> busy;
  for (unsigned thread = 0; thread < 2 * std::thread::hardware_concurrency(); ++thread)
    busy.emplace_back([&] {
      while (!over)
        std::atomic_signal_fence(std::memory_order_seq_cst);
    });
  const auto result = Running(training("60")).wait();
  over = true;
  for (std::thread& thread : busy)
    thread.join();
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("is slow") == std::string::npos);
}

}  // namespace slow_rank_test
