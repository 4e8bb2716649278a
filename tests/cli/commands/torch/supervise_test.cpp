// Supervised training: ranks are really killed and stopped, and the final weights are those of an
// undisturbed training.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <regex>
#include <thread>

#include "cli/support/program.hpp"
#include "cli/support/saved_steps.hpp"
#include "support/catch.hpp"
#include "support/uninvited.hpp"

namespace supervise_test {

using namespace pipewright;
using namespace std::chrono_literals;
namespace fs = std::filesystem;
using test::newest_step_in;
using test::run_program;
using test::Running;
using test::TempFolder;
using Words = std::vector<std::string>;

constexpr int steps = 240;

/// Returns the small GPT with clipping; its costs are measured once for all tests of this file.
Words words_of(const std::string& command, const Words& more) {
  static const TempFolder folder;
  static const std::string costs = [] {
    auto name = (folder.path() / "costs.json").string();
    REQUIRE(run_program(test::small_gpt("profile", {"--over", "0", "-o", name})).exit_code == 0);
    return name;
  }();
  Words words{"--costs", costs,
              "--set",   "training.clip_norm=0.5",
              "--set",   "pipeline.ranks=3",
              "--set",   "training.steps=" + std::to_string(steps)};
  words.insert(words.end(), more.begin(), more.end());
  return test::small_gpt(command, words);
}

Words train_into(const fs::path& checkpoints, Words more, const std::string& every = "5") {
  more.insert(more.end(), {"--checkpoints", checkpoints.string(), "--checkpoint-every", every});
  return words_of("train", more);
}

/// Waits until the condition holds; returns false if it never does.
bool await(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 90s;
  while (!condition() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(2ms);
  return condition();
}

/// Returns the weights after the last step.
std::map<std::string, std::string> weights_in(const fs::path& checkpoints) {
  return test::weights_after(checkpoints, steps);
}

const std::map<std::string, std::string>& undisturbed_weights() {
  static const TempFolder folder;
  static const auto weights = [] {
    REQUIRE(run_program(train_into(folder.path(), {})).exit_code == 0);
    return weights_in(folder.path());
  }();
  return weights;
}

int count_of(const std::string& words, const std::string& text) {
  int count = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++count;
  return count;
}

/// Sends a signal to a child of a training that has reached that checkpoint and whose ranks are all
/// running.
void signal_after(const Running& training, const fs::path& checkpoints, int step,
                  std::size_t children, std::size_t child, int signal) {
  REQUIRE(await([&] {
    return newest_step_in(checkpoints) >= step && training.children().size() == children;
  }));
  kill(training.children().at(child), signal);
}

/// Kills rank 1 of three twice without a checkpoint in between; checkpoints are 20 steps apart.
void kill_rank_1_twice(const Running& training, const fs::path& checkpoints) {
  signal_after(training, checkpoints, 20, 3, 1, SIGKILL);
  REQUIRE(await([&] {
    return count_of("continues from step", training.err()) == 1 && training.children().size() == 3;
  }));
  kill(training.children().at(1), SIGKILL);
}

TEST_CASE("supervise: killing and stopping ranks changes no bit of the trained parameters",
          "[cli][supervise]") {
  const TempFolder folder;
  const Running training(
      train_into(folder.path(), {"--processes", "--supervise", "--timeout", "2"}));
  signal_after(training, folder.path(), 10, 3, 1, SIGKILL);
  REQUIRE(await([&] { return count_of("continues from step", training.err()) == 1; }));
  const int first = newest_step_in(folder.path());
  signal_after(training, folder.path(), first + 20, 3, 0, SIGKILL);
  REQUIRE(await([&] { return count_of("continues from step", training.err()) == 2; }));
  const int second = newest_step_in(folder.path());
  signal_after(training, folder.path(), second + 20, 3, 2, SIGSTOP);
  const auto result = training.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(weights_in(folder.path()) == undisturbed_weights());
  CHECK(result.err.find("rank 1 was ended by signal 9") != std::string::npos);
  CHECK(result.err.find("rank 0 was ended by signal 9") != std::string::npos);
  CHECK(count_of("after 1 of 3 failures without a newer checkpoint", result.err) == 3);
  CHECK(result.err.find("not bit-identical") == std::string::npos);
}

TEST_CASE("supervise restarts a training that runs as threads", "[cli][supervise]") {
  const TempFolder folder;
  const Running training(train_into(folder.path(), {"--supervise", "--timeout", "2"}));
  signal_after(training, folder.path(), 10, 1, 0, SIGKILL);
  REQUIRE(await([&] { return count_of("continues from step", training.err()) == 1; }));
  const int first = newest_step_in(folder.path());
  signal_after(training, folder.path(), first + 20, 1, 0, SIGSTOP);
  const auto result = training.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(weights_in(folder.path()) == undisturbed_weights());
  CHECK(count_of("continues from step", result.err) == 2);
}

TEST_CASE("supervise gives up with a message after repeated failures without progress",
          "[cli][supervise]") {
  const TempFolder folder;
  const Running training(train_into(folder.path(), {"--processes", "--supervise", "--tries", "2"}));
  for (int failure = 1; failure <= 2; ++failure) {
    REQUIRE(await([&] {
      return training.children().size() == 3 &&
             count_of("continues from step", training.err()) == failure - 1;
    }));
    kill(training.children().at(2), SIGKILL);
    if (failure < 2)
      REQUIRE(await([&] { return count_of("continues from step", training.err()) == failure; }));
  }
  const auto result = training.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(
      result.err.find("continues from step 0, after 1 of 2 failures without a newer checkpoint") !=
      std::string::npos);
  CHECK(result.err.find("gives up: 2 failures without a checkpoint after step 0") !=
        std::string::npos);
}

TEST_CASE("supervise reports bad input once, and requires a folder of checkpoints",
          "[cli][supervise]") {
  const TempFolder folder;
  const auto bad = run_program(
      train_into(folder.path(), {"--processes", "--supervise", "--data", "/no/such/file"}));
  CAPTURE(bad.err);
  CHECK(bad.exit_code == 2);
  CHECK(bad.err.find("continues") == std::string::npos);
  const auto none = run_program(words_of("train", {"--supervise"}));
  CHECK(none.exit_code == 2);
  CHECK(none.err.find("--supervise need --checkpoints FOLDER") != std::string::npos);
  const auto alone = run_program(train_into(folder.path(), {"--replan"}));
  CHECK(alone.exit_code == 2);
  CHECK(alone.err.find("--replan needs --supervise") != std::string::npos);
  const auto threads = run_program(train_into(folder.path(), {"--supervise", "--spares", "1"}));
  CHECK(threads.exit_code == 2);
  CHECK(threads.err.find("--spares needs --processes and --supervise") != std::string::npos);
}

TEST_CASE("supervise --replan gives up a rank that is lost twice, and the bits stay equal",
          "[cli][supervise]") {
  const TempFolder folder;
  const Running training(
      train_into(folder.path(), {"--processes", "--supervise", "--replan"}, /*every=*/"20"));
  kill_rank_1_twice(training, folder.path());
  const auto result = training.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("gives up rank 1: continues from step 20 with pipeline.ranks=2") !=
        std::string::npos);
  CHECK(weights_in(folder.path()) == undisturbed_weights());
}

/// Returns the name that a rank of `--processes` has, such as "rank 1" or, at a spare place,
/// "rank 1 on 3".
std::string name_of(pid_t process) {
  const std::string name = test::text_of("/proc/" + std::to_string(process) + "/comm");
  return name.substr(0, name.find('\n'));
}

TEST_CASE("supervise --spares replaces a rank that is lost twice by a spare place",
          "[cli][supervise]") {
  const TempFolder folder;
  const Running training(train_into(
      folder.path(), {"--processes", "--supervise", "--replan", "--spares", "1"}, /*every=*/"20"));
  kill_rank_1_twice(training, folder.path());
  REQUIRE(await([&] { return count_of("gives up rank 1", training.err()) == 1; }));
  CHECK(await([&] {
    const auto ranks = training.children();
    return ranks.size() == 3 && name_of(ranks[1]) == "rank 1 on 3" && name_of(ranks[2]) == "rank 2";
  }));
  const auto result = training.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("gives up rank 1: continues from step 20 with place 3 instead") !=
        std::string::npos);
  CHECK(weights_in(folder.path()) == undisturbed_weights());
}

TEST_CASE("supervise: after a SIGUSR1 the places that were given up are used again",
          "[cli][supervise]") {
  const TempFolder folder;
  const Running training(
      train_into(folder.path(), {"--processes", "--supervise", "--replan"}, /*every=*/"20"));
  REQUIRE(await([&] { return newest_step_in(folder.path()) >= 20; }));
  training.signal(SIGUSR1);  // before a place was given up
  REQUIRE(await([&] { return count_of("no place was given up", training.err()) == 1; }));
  kill_rank_1_twice(training, folder.path());
  REQUIRE(await([&] { return count_of("with pipeline.ranks=2", training.err()) == 1; }));
  training.signal(SIGUSR1);
  const auto result = training.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(count_of("uses place 1 again: continues from step ", result.err) == 1);
  CHECK(count_of(" with pipeline.ranks=3", result.err) == 1);
  CHECK(weights_in(folder.path()) == undisturbed_weights());
}

/// Starts three processes for two ranks, as Slurm would.
class ThreeOfSlurm {
 public:
  ThreeOfSlurm(const fs::path& checkpoints, const std::string& number_of_steps,
               const std::map<std::string, std::string>& more)
      : first(words(checkpoints, number_of_steps), variables("0", more)),
        second(words(checkpoints, number_of_steps), variables("1", more)),
        third(words(checkpoints, number_of_steps), variables("2", more)) {}

  const Running first, second, third;

 private:
  static Words words(const fs::path& checkpoints, const std::string& number_of_steps) {
    return train_into(checkpoints, {"--supervise", "--timeout", "3", "--set", "pipeline.ranks=2",
                                    "--set", "training.steps=" + number_of_steps});
  }
  static std::map<std::string, std::string> variables(std::string rank,
                                                      std::map<std::string, std::string> more) {
    const auto port = std::to_string(29500 + getpid() % 1000);
    more.insert({{"SLURM_PROCID", rank},
                 {"SLURM_NTASKS", "3"},
                 {"SLURM_LOCALID", rank},
                 {"SLURM_JOB_ID", "7"},
                 {"SLURM_STEP_NODELIST", "127.0.0.1"},
                 {"MASTER_ADDR", "127.0.0.1"},
                 {"MASTER_PORT", port}});
    return more;
  }
};

TEST_CASE(
    "supervise: a launcher's extra process waits as a spare, and ends with the job's exit code",
    "[cli][supervise]") {
  for (const std::map<std::string, std::string>& secret :
       {std::map<std::string, std::string>{},
        {{"PIPEWRIGHT_JOB_SECRET", "known to all ranks of this job"}}}) {
    CAPTURE(secret.size());
    const TempFolder folder;
    {
      const ThreeOfSlurm done(folder.path(), std::to_string(steps), secret);
      const auto first = done.first.wait(), third = done.third.wait();
      CAPTURE(first.err, third.err);
      CHECK(first.exit_code == 0);
      CHECK(done.second.wait().exit_code == 0);
      CHECK(third.exit_code == 0);
      CHECK(third.err == "process 2 is a spare: the job has 2 ranks\n");
      CHECK(weights_in(folder.path()) == undisturbed_weights());
    }
    const ThreeOfSlurm killed(folder.path(), "100000", secret);
    REQUIRE(await([&] { return newest_step_in(folder.path()) > steps; }));
    killed.second.signal(SIGKILL);
    CHECK(killed.second.wait().exit_code == 128 + SIGKILL);
    CHECK(killed.first.wait().exit_code == 1);
    const auto third = killed.third.wait();
    CAPTURE(third.err);
    CHECK(third.exit_code == 1);
    CHECK(count_of("standby process 2 ends, because the job ended before its work was done",
                   third.err) == 1);
  }
}

TEST_CASE("job: connections to a training's ports without its secret change nothing",
          "[cli][job]") {
  const TempFolder folder;
  const Running training(train_into(folder.path(), {"--processes"}));
  const test::Uninvited uninvited([&] { return training.children(); });
  REQUIRE(await([&] { return newest_step_in(folder.path()) >= 10; }));
  for (const pid_t rank : training.children()) {
    const std::string process = "/proc/" + std::to_string(rank);
    // The secret has 64 hexadecimal digits (exec/local_job_test).
    static const std::regex secret("[0-9a-f]{64}");
    CHECK_FALSE(std::regex_search(test::text_of(process + "/cmdline"), secret));
    CHECK(test::text_of(process + "/environ").find("PIPEWRIGHT_JOB_SECRET") == std::string::npos);
    CHECK((fs::status(process + "/environ").permissions() &
           (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
  }
  const auto result = training.wait();
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(uninvited.visits() > 20);
  CHECK(weights_in(folder.path()) == undisturbed_weights());
}

}  // namespace supervise_test
