// A rank is slowed persistently by real load: it is replaced by another place, or the job continues
// with one rank less. The weights are those of an undisturbed training.

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "cli/support/program.hpp"
#include "cli/support/saved_steps.hpp"
#include "support/catch.hpp"

namespace permanent_straggler_test {

using namespace pipewright;
using namespace std::chrono_literals;
using test::newest_step_in;
using test::Running;

/// Returns a training whose steps take some tenths of a second, with checkpoints and known costs.
std::vector<std::string> training_into(const std::filesystem::path& checkpoints, int steps,
                                       const std::vector<std::string>& more) {
  static const test::TempFolder folder;
  const auto words = [](const std::string& command, const std::vector<std::string>& last) {
    std::vector<std::string> all{"--set", "model.hidden=256",          "--set", "model.sequence=64",
                                 "--set", "training.microbatch_size=4"};
    all.insert(all.end(), last.begin(), last.end());
    return test::small_gpt(command, all);
  };
  static const std::string costs = [&] {
    auto name = (folder.path() / "costs.json").string();
    REQUIRE(test::run_program(words("profile", {"--over", "0", "-o", name})).exit_code == 0);
    return name;
  }();
  std::vector<std::string> all{"--costs",
                               costs,
                               "--set",
                               "training.steps=" + std::to_string(steps),
                               "--checkpoints",
                               checkpoints.string(),
                               "--checkpoint-every",
                               "3"};
  all.insert(all.end(), more.begin(), more.end());
  return words("train", all);
}

TEST_CASE("supervise takes a permanently slow rank out of the job, and the bits stay equal",
          "[cli][slow][supervise]") {
  struct Case {
    std::string ranks;
    std::vector<std::string> words;
    std::string continues_with;
  };
  const auto of = GENERATE(Case{"2", {"--spares", "1"}, "place 2 instead"},
                           Case{"3", {"--replan"}, "pipeline.ranks=2"});
  const test::TempFolder folder, other;
  std::vector<std::string> words{"--processes", "--supervise", "--set",
                                 "pipeline.ranks=" + of.ranks};
  words.insert(words.end(), of.words.begin(), of.words.end());
  const Running job(training_into(folder.path(), 100000, words));
  const auto deadline = std::chrono::steady_clock::now() + 240s;
  const auto await = [&](const std::function<bool()>& condition) {
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(5ms);
    return condition();
  };
  const auto said = [&](const std::string& what) {
    return job.err().find(what) != std::string::npos;
  };
  REQUIRE(await([&] { return newest_step_in(folder.path()) >= 15; }));
  REQUIRE(job.children().size() == std::stoul(of.ranks));
  const pid_t slowed = job.children().at(1);
  while (!said("gives up") && !said("continues") && std::chrono::steady_clock::now() < deadline) {
    kill(slowed, SIGSTOP);
    std::this_thread::sleep_for(120ms);
    kill(slowed, SIGCONT);
    std::this_thread::sleep_for(20ms);
  }
  const int then = newest_step_in(folder.path());
  CHECK(await([&] { return newest_step_in(folder.path()) > then; }));
  job.signal(SIGTERM);
  const auto result = job.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 130);
  CHECK(said("rank 1 is slow for good: that has cost "));
  CHECK(said("gives up rank 1: continues from step "));
  CHECK(said(of.continues_with));
  const int last = newest_step_in(folder.path());
  REQUIRE(last > then);
  REQUIRE(test::run_program(training_into(other.path(), last, {})).exit_code == 0);
  CHECK(test::weights_after(folder.path(), last) == test::weights_after(other.path(), last));
}

}  // namespace permanent_straggler_test
