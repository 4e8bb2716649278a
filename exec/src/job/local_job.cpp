#include "pipewright/exec/job/local_job.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "coming_together.hpp"
#include "store_socket.hpp"

namespace pipewright::exec {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int ended_by_signal = 1;
constexpr int cannot_start = 127;  // as shells have it
/// For ranks that fail while the job comes together, each for the same reason perhaps.
constexpr std::chrono::milliseconds to_say_why{1000};

/// In the child: never returns.
[[noreturn]] void become_rank(const LocalJob& job, int rank, const StoreSocket& store,
                              const ComingTogether& together) {
  together.hand_on();
  if (rank == 0)
    store.hand_on();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // ranks do not outlive who started them
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), /*overwrite=*/1);
  };
  set("RANK", std::to_string(rank));
  set("LOCAL_RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(job.ranks));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", std::to_string(store.port()));
  std::vector<char*> words;
  for (const std::string& word : job.words)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(job.program.c_str(), words.data());
  _exit(cannot_start);
}

std::vector<pid_t> start(const LocalJob& job, ComingTogether& together) {
  const StoreSocket store;  // rank 0 has it, too
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < job.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0)
      become_rank(job, rank, store, together);
    if (child < 0)
      throw std::runtime_error(fmt::format("rank {} cannot start: {}", rank, std::strerror(errno)));
    ranks.push_back(child);
  }
  together.all_started();
  return ranks;
}

/// What a rank's end says.
int code_of(const LocalJob& job, int status, std::size_t rank) {
  if (WIFEXITED(status))
    return WEXITSTATUS(status);
  if (job.say)
    job.say(fmt::format("rank {} was ended by signal {} ({})", rank, WTERMSIG(status),
                        strsignal(WTERMSIG(status))));
  return ended_by_signal;
}

}  // namespace

int run_local_job(const LocalJob& job) {
  ComingTogether together;
  std::vector<pid_t> ranks = start(job, together);
  const auto signal_all = [&](int signal) {
    for (const pid_t rank : ranks)
      if (rank != 0)
        kill(rank, signal);
  };
  int code = 0;
  std::size_t left = ranks.size();
  std::optional<Clock::time_point> failed;
  bool passed_on = false, killed = false;
  while (left > 0) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      int status = 0;
      if (ranks[rank] == 0 || waitpid(ranks[rank], &status, WNOHANG) != ranks[rank])
        continue;
      ranks[rank] = 0;
      --left;
      if (killed)
        continue;  // by us, which says nothing of it
      if (const int own = code_of(job, status, rank); own != 0) {
        code = code == 0 ? own : code;
        failed = failed.value_or(Clock::now());
      }
    }
    if (job.stop != nullptr && *job.stop && !std::exchange(passed_on, true))
      signal_all(SIGTERM);
    // Who has not met the others cannot learn that one is gone.
    const auto grace = together.is_going_on() ? std::min(job.grace, to_say_why) : job.grace;
    if (failed && !killed && Clock::now() - *failed > grace) {
      signal_all(SIGKILL);
      killed = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return code;
}

}  // namespace pipewright::exec
