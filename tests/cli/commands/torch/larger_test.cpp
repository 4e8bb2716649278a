// A model that is too large for one process of a rank's size is profiled, trained, checkpointed and
// resumed by several.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cli/support/program.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/skip.hpp"

namespace larger_test {

using namespace pipewright;
using nlohmann::json;
using test::Running;
using test::small_gpt;
using test::TempFolder;

/// Returns the mapped bytes; 0 for a process that has ended.
std::int64_t mapped_by(pid_t process) {
  std::ifstream lines("/proc/" + std::to_string(process) + "/status");
  std::int64_t kilobytes = 0;
  for (std::string word; lines >> word;)
    if (word == "VmPeak:" && lines >> kilobytes)
      return kilobytes * 1024;
  return 0;
}

/// Returns the most that a process of a tiny training maps: libraries, threads, and little else.
std::int64_t mapped_by_tiny_training(const std::string& folder, const std::string& ranks) {
  const Running running(
      small_gpt("train", {"--processes", "--checkpoints", folder, "--set", ranks}));
  std::atomic<bool> ended = false;
  std::int64_t most = 0;
  std::thread watcher([&] {
    while (!ended) {
      for (const pid_t child : running.children())
        most = std::max(most, mapped_by(child));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const int code = running.wait().exit_code;
  ended = true;
  watcher.join();
  REQUIRE(code == 0);
  return most;
}

/// Limits the memory that programs started during its lifetime may map.
class Limit {
 public:
  explicit Limit(std::int64_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{static_cast<rlim_t>(bytes), before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~Limit() { setrlimit(RLIMIT_AS, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  rlimit before_{};
};

/// Makes programs that are started during its lifetime map the same amount whenever they run. If
/// threads contend in malloc, glibc otherwise maps another arena, 64 MB or more, and their number
/// is random.
class FewArenas {
 public:
  FewArenas() { ::setenv("MALLOC_ARENA_MAX", "2", /*overwrite=*/1); }
  ~FewArenas() { ::unsetenv("MALLOC_ARENA_MAX"); }
  FewArenas(const FewArenas&) = delete;
  FewArenas& operator=(const FewArenas&) = delete;
};

/// Memory of the large model in addition to a tiny one: more than the 570 MB of each of two ranks,
/// less than the 1,010 MB of one.
constexpr std::int64_t beyond = 750'000'000;

/// Returns the arguments for a model of 63 M parameters: 1,010 MB with gradients and AdamW's
/// states, 505 MB on each of two ranks, and activations.
std::vector<std::string> large_gpt(const std::string& command, std::vector<std::string> more) {
  more.insert(more.end(), {"--set", "model.blocks=20", "--set", "model.hidden=512"});
  return small_gpt(command, more);
}

TEST_CASE(
    "A model larger than one process's memory is profiled, trained, checkpointed and resumed by "
    "several",
    "[cli][memory]") {
  if (test::sanitized)
    test::skip("a sanitizer maps all there is");
  const FewArenas few;
  const TempFolder folder;
  const auto at = [&](const char* name) { return (folder.path() / name).string(); };
  const std::string two = "pipeline.ranks=2", one = "pipeline.ranks=1";
  const std::int64_t of_two = mapped_by_tiny_training(at("tiny of two"), two),
                     of_one = mapped_by_tiny_training(at("tiny of one"), one);
  std::optional<Limit> limit(of_two + beyond);

  const auto profiled =
      test::run_program(large_gpt("profile", {"--over", "0", "-o", at("costs.json")}));
  INFO(profiled.err);
  REQUIRE(profiled.exit_code == 0);
  CHECK(profiled.out.find("20 layers like block0, measured at ") != std::string::npos);
  std::ifstream file(at("costs.json"));
  const json costs = json::parse(file);
  REQUIRE(costs["identical_layers"].size() == 1);
  CHECK(costs["identical_layers"][0]["layers"].size() == 20);
  CHECK(costs["identical_layers"][0]["measured"].size() < 20);

  const auto trained = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all{"--processes", "--costs", at("costs.json"), "--json"};
    all.insert(all.end(), words.begin(), words.end());
    const auto done = test::run_program(large_gpt("train", all));
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
    return json::parse(done.out)["loss"].get<std::vector<double>>();
  };
  auto losses = trained({"--set", "training.steps=2", "--checkpoints", at("saved")});
  const auto rest =
      trained({"--set", "training.steps=4", "--checkpoints", at("saved"), "--resume"});
  CHECK(rest.size() == 2);
  losses.insert(losses.end(), rest.begin(), rest.end());
  CHECK(losses == trained({"--set", "training.steps=4"}));

  limit.reset();
  limit.emplace(of_one + beyond);
  const std::vector<std::string> alone{"--processes", "--costs", at("costs.json"), "--set", one};
  CHECK(test::run_program(large_gpt("train", alone)).exit_code != 0);
}

TEST_CASE("profile reuses earlier measurements, and prints that it does; --fresh measures again",
          "[cli][profile]") {
  const TempFolder cache;
  const auto profile = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--over", "0"};
    words.insert(words.end(), more.begin(), more.end());
    return Running(small_gpt("profile", words), {{"XDG_CACHE_HOME", cache.path().string()}}).wait();
  };
  const std::string known = " of 6 layers use costs measured on ";
  const auto first = profile({});
  REQUIRE(first.exit_code == 0);
  CHECK(first.out.find(known) == std::string::npos);
  const auto second = profile({});
  CHECK(second.out.find("6" + known) != std::string::npos);
  CHECK(second.out.find((cache.path() / "pipewright").string()) != std::string::npos);
  CHECK(profile({"--fresh"}).out.find(known) == std::string::npos);
  const auto run = Running(small_gpt("run", {"-o", (cache.path() / "run").string()}),
                           {{"XDG_CACHE_HOME", cache.path().string()}})
                       .wait();
  REQUIRE(run.exit_code == 0);
  CHECK(run.err.find("6" + known) != std::string::npos);
}

}  // namespace larger_test
