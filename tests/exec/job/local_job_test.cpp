// Ranks that a launcher starts on this machine, and which of them is reported as failed.

#include "pipewright/exec/job/local_job.hpp"

#include <fcntl.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "support/catch.hpp"
#include "support/file_bytes.hpp"
#include "support/skip.hpp"
#include "support/temp_folder.hpp"

namespace local_job_test {

using namespace pipewright;
using exec::LocalJob;

constexpr auto for_ever = std::chrono::hours(1);

struct Ended {
  int code = 0;
  std::vector<std::string> said;
};

/// Runs three ranks that execute a shell script.
Ended ended(const std::string& script, std::chrono::milliseconds grace) {
  Ended end;
  end.code =
      exec::run_local_job({.program = "/bin/sh",
                           .words = {"sh", "-c", script},
                           .ranks = 3,
                           .grace = grace,
                           .say = [&](const std::string& text) { end.said.push_back(text); }});
  return end;
}

const std::string meets_the_others = "eval \"exec $PIPEWRIGHT_RENDEZVOUS>&-\"; ";
const std::vector<std::string> rank_1_was_killed{"rank 1 was ended by signal 9 (Killed)"};

TEST_CASE("A rank that is killed before all have joined ends the job, and is named", "[job]") {
  const Ended end = ended("[ $RANK = 1 ] && kill -9 $$; exec sleep 1000", for_ever);
  CHECK(end.code == 1);
  CHECK(end.said == rank_1_was_killed);
}

TEST_CASE("So does one that is killed while a single other rank has not joined", "[job]") {
  const Ended end =
      ended("[ $RANK = 1 ] && kill -9 $$; [ $RANK = 0 ] && " + meets_the_others + "exec sleep 1000",
            for_ever);
  CHECK(end.said == rank_1_was_killed);
}

TEST_CASE("Once all have joined, the others end without being killed", "[job]") {
  const test::TempFolder folder;
  const std::string ended_itself = folder.path() / "rank";
  const Ended end =
      ended(meets_the_others + "[ $RANK = 1 ] && sleep 1 && kill -9 $$; sleep 2; touch " +
                ended_itself + "$RANK; exit 3",
            for_ever);
  CHECK(end.code == 1);
  CHECK(end.said == rank_1_was_killed);
  CHECK(std::filesystem::exists(ended_itself + "0"));
  CHECK(std::filesystem::exists(ended_itself + "2"));
}

TEST_CASE("A rank that does not end in time after all have joined is killed, and not named",
          "[job]") {
  const Ended end = ended(meets_the_others + "[ $RANK = 1 ] && kill -9 $$; exec sleep 1000",
                          std::chrono::milliseconds(300));
  CHECK(end.said == rank_1_was_killed);
}

TEST_CASE("A stopped rank is killed once another has failed, and is named", "[job]") {
  const Ended end = ended(meets_the_others +
                              "[ $RANK = 1 ] && kill -STOP $$; [ $RANK = 2 ] && "
                              "sleep 0.3 && exit 7; exit 0",
                          for_ever);
  CHECK(end.code == 7);
  CHECK(end.said == std::vector<std::string>{
                        "rank 1 was ended by signal 9 (Killed), because it had been stopped"});
}

TEST_CASE("A launcher started with SIGCHLD ignored is still told when its children end", "[job]") {
  std::signal(SIGCHLD, SIG_IGN);
  const Ended end = ended("exit 7", for_ever);
  std::signal(SIGCHLD, SIG_DFL);
  CHECK(end.code == 7);
}

TEST_CASE("While the job is joining, a failing rank has time to say why", "[job]") {
  const Ended end = ended("[ $RANK = 1 ] && exit 7; sleep 0.2; exit 8", for_ever);
  CHECK(end.code == 7);
  CHECK(end.said.empty());
}

TEST_CASE("The store's port is taken before any rank starts, and only on the loopback", "[job]") {
  // /proc/net/tcp has addresses and ports as hexadecimal numbers. Rank 0 owns the socket, which is
  // closed when it ends.
  const Ended end = ended(
      "[ $RANK = 0 ] || exit 0; port=$(printf ':%04X' $MASTER_PORT); grep -q \"0100007F$port\" "
      "/proc/net/tcp || exit 4; "
      "! grep -q \"00000000$port\" /proc/net/tcp || exit 5",
      for_ever);
  CHECK(end.code == 0);
}

TEST_CASE("Ranks get their places, and a rank that exits is reported with its code", "[job]") {
  std::vector<std::pair<int, int>> failed;
  const auto note = [&](int rank, int code) { failed.emplace_back(rank, code); };
  // Each rank exits with ten times its rank plus its place.
  exec::run_local_job({.program = "/bin/sh",
                       .words = {"sh", "-c", meets_the_others + "exit $((10 * RANK + LOCAL_RANK))"},
                       .ranks = 3,
                       .places = {0, 7, 2},
                       .grace = for_ever,
                       .failed = note});
  std::sort(failed.begin(), failed.end());
  CHECK(failed == std::vector<std::pair<int, int>>{{1, 17}, {2, 22}});
}

TEST_CASE(
    "Ranks that are forks know their rank, have default signal handlers and no socket of rank 0",
    "[job]") {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  if (std::distance(begin(threads), end(threads)) > 1)
    test::skip("earlier test cases of this process have started threads");
  const test::TempFolder folder;
  const std::string written = folder.path() / "rank";
  std::signal(SIGUSR1, [](int) {});
  const auto is_open = [](const char* variable) {
    return fcntl(std::atoi(std::getenv(variable)), F_GETFD) != -1;
  };
  const auto rank_main = [&](const std::vector<std::string>& words) {
    const std::string rank = std::getenv("RANK");
    std::ofstream(written + rank) << words.at(0) << ' ' << is_open("PIPEWRIGHT_RENDEZVOUS") << ' '
                                  << std::getenv("LOCAL_RANK") << ' '
                                  << test::bytes_of_file("/proc/self/comm");
    const std::string secret = std::getenv("PIPEWRIGHT_JOB_SECRET");
    if (secret.size() != 64 || secret.find_first_not_of("0123456789abcdef") != std::string::npos)
      return 7;
    if (rank == "0")
      return is_open("PIPEWRIGHT_STORE_SOCKET") ? 0 : 9;
    if (std::getenv("PIPEWRIGHT_STORE_SOCKET") != nullptr)
      return 8;
    return rank == "1" ? std::raise(SIGUSR1) : 0;
  };
  std::vector<std::string> said;
  const int code =
      exec::run_local_job({.program = "/no/such/program",
                           .main = rank_main,
                           .words = {"word"},
                           .ranks = 3,
                           .places = {0, 1, 7},
                           .grace = for_ever,
                           .say = [&](const std::string& text) { said.push_back(text); }});
  std::signal(SIGUSR1, SIG_DFL);
  CHECK(code == 1);
  CHECK(said == std::vector<std::string>{"rank 1 was ended by signal 10 (User defined signal 1)"});
  CHECK(test::bytes_of_file(written + "0") == "word 1 0 rank 0\n");
  CHECK(test::bytes_of_file(written + "1") == "word 1 1 rank 1\n");
  CHECK(test::bytes_of_file(written + "2") == "word 1 7 rank 2 on 7\n");
}

TEST_CASE("A process with a second thread starts the program instead of forking", "[job]") {
  std::jthread second([](const std::stop_token& stop) {
    while (!stop.stop_requested())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const int code = exec::run_local_job({.program = "/bin/sh",
                                        .main = [](const auto&) { return 9; },
                                        .words = {"sh", "-c", "exit 7"}});
  CHECK(code == 7);
}

TEST_CASE("A program that cannot start is reported by its exit code", "[job]") {
  CHECK(exec::run_local_job({.program = "/no/such/program", .words = {"x"}, .ranks = 2}) == 127);
}

}  // namespace local_job_test
