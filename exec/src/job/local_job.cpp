#include "pipewright/exec/job/local_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "crypto.hpp"
#include "forwarded.hpp"
#include "sockets.hpp"

namespace pipewright::exec {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_looks{20};
constexpr int ended_by_signal = 1;
constexpr int cannot_start = 127;  // as in shells
/// Grace period for ranks that fail during the rendezvous, possibly all for the same reason.
constexpr std::chrono::milliseconds to_say_why{1000};
/// The longest time for which a rank may be stopped before it is killed, once another has failed.
constexpr std::chrono::milliseconds stopped_for_a_moment{500};

/// Marks a process that a launcher has started outside of any job.
constexpr const char* variable_of_alone = "PIPEWRIGHT_ALONE";

/// The values that a launcher forwards to its ranks. The store's port is opened on the loopback
/// interface before a rank runs, so that it is known and cannot be taken by another process.
struct Launch {
  const FileDescriptor store = listen_on("127.0.0.1", 0);
  const std::string secret = to_hex(random_bytes(32));
  FileDescriptor rendezvous;  // the write end of the ranks' pipe
  int rendezvous_of_launcher = -1;
  bool forks = false;  // ranks are forks of the launcher, and execute no program
  const pid_t launcher = getpid();
};

int place_of(const LocalJob& job, int rank) {
  return job.places.empty() ? rank : job.places.at(static_cast<std::size_t>(rank));
}

/// Sets the environment of a child that becomes a rank.
void set_place(const LocalJob& job, int rank, const Launch& launch) {
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), /*overwrite=*/1);
  };
  if (job.alone)
    return set(variable_of_alone, "1");
  forward(launch.rendezvous, variable_of_rendezvous);
  if (rank == 0)
    forward(launch.store, variable_of_socket);
  set("RANK", std::to_string(rank));
  set("LOCAL_RANK", std::to_string(place_of(job, rank)));
  set("WORLD_SIZE", std::to_string(job.ranks));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", std::to_string(port_of(launch.store)));
  set(variable_of_secret, launch.secret);
}

/// Makes the kernel kill this rank when its launcher ends.
void end_with(pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher)  // the launcher has already ended
    _exit(cannot_start);
}

/// Makes sure that this process learns how its children end, even if the process that started it
/// had set SIGCHLD to be ignored.
void hear_of_children() {
  struct sigaction now {};
  if (sigaction(SIGCHLD, nullptr, &now) == 0 && now.sa_handler == SIG_IGN)
    std::signal(SIGCHLD, SIG_DFL);
}

/// Returns true if a fork of this process can run on: locks that other threads hold would stay
/// locked in it.
bool has_one_thread() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads)) == 1;
}

/// Undoes in a fork what executing a program would undo: signal handlers, and files of the
/// launcher. A rank that kept rank 0's listening socket would let others wait for a rank 0 that has
/// died.
void forget_launcher(int rank, const Launch& launch) {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      std::signal(signal, SIG_DFL);
  }
  close(launch.rendezvous_of_launcher);
  if (rank != 0)
    close(launch.store.get());
}

/// Runs in the child and never returns.
[[noreturn]] void become_rank(const LocalJob& job, int rank, const Launch& launch) {
  end_with(launch.launcher);
  set_place(job, rank, launch);
  if (launch.forks) {
    forget_launcher(rank, launch);
    // `ps -o comm` shows this name. The command line is the launcher's for all ranks.
    const int place = place_of(job, rank);
    const std::string name =
        place == rank ? fmt::format("rank {}", rank) : fmt::format("rank {} on {}", rank, place);
    if (!job.alone)
      prctl(PR_SET_NAME, name.c_str());
    std::exit(job.main(job.words));
  }
  std::vector<char*> words;
  for (const std::string& word : job.words)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(job.program.c_str(), words.data());
  _exit(cannot_start);
}

std::vector<pid_t> start(const LocalJob& job, const Launch& launch) {
  std::fflush(nullptr);  // a fork would write the buffered text again
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < job.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0)
      become_rank(job, rank, launch);
    if (child < 0)
      throw std::runtime_error(fmt::format("rank {} cannot start: {}", rank, std::strerror(errno)));
    ranks.push_back(child);
  }
  return ranks;
}

/// A pipe that tells whether a living rank has not met the others yet: each rank holds the write
/// end until then. So the end of a rank is known at once, even before its first heartbeat.
class Rendezvous {
 public:
  Rendezvous() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
    ours_ = FileDescriptor(ends[0]);
    theirs_ = FileDescriptor(ends[1]);
  }
  /// Returns the ranks' end, which must be closed in this process once all ranks were started.
  FileDescriptor take_end_of_ranks() { return std::move(theirs_); }
  int end_of_launcher() const { return ours_.get(); }
  bool is_pending() const {
    pollfd end{.fd = ours_.get(), .events = POLLIN, .revents = 0};
    return poll(&end, 1, 0) == 0;  // POLLHUP once no process holds the other end
  }

 private:
  FileDescriptor ours_, theirs_;
};

/// The running ranks, as child processes of their launcher.
class Children {
 public:
  Children(const LocalJob& job, std::vector<pid_t> ranks)
      : job_(job), ranks_(std::move(ranks)), stopped_for_(ranks_.size()), left_(ranks_.size()) {}

  bool any() const { return left_ > 0; }
  int code() const { return code_; }
  std::optional<Clock::time_point> failed() const { return failed_; }

  void signal_all(int signal) const {
    for (const pid_t rank : ranks_)
      if (rank != 0)
        kill(rank, signal);
  }
  void kill_late() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      if (ranks_[rank] != 0 && is_stopped(rank))
        tell_lost(rank);
    signal_all(SIGKILL);
    killed_ = true;
  }
  bool were_killed() const { return killed_; }

  void look() {
    const auto now = Clock::now();
    // This process may have been stopped itself, so the elapsed time is limited.
    const auto elapsed = std::min<Clock::duration>(now - last_look_, 2 * between_looks);
    last_look_ = now;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      look_at(rank, elapsed);
  }

 private:
  void look_at(std::size_t rank, Clock::duration elapsed) {
    int status = 0;
    if (ranks_[rank] == 0)
      return;
    if (waitpid(ranks_[rank], &status, WNOHANG | WUNTRACED | WCONTINUED) == ranks_[rank]) {
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        stopped_for_[rank] = WIFSTOPPED(status) ? Clock::duration{1} : Clock::duration{0};
        return;
      }
      ranks_[rank] = 0;
      --left_;
      if (!killed_)  // if we killed it, its exit code says nothing
        note_end(rank, status);
      return;
    }
    if (!is_stopped(rank))
      return;
    stopped_for_[rank] += elapsed;
    if ((failed_ && stopped_for_[rank] > stopped_for_a_moment) ||
        (job_.stopped.count() > 0 && stopped_for_[rank] > job_.stopped))
      kill(ranks_[rank], SIGKILL);
  }

  void note_end(std::size_t rank, int status) {
    const int own = WIFEXITED(status) ? WEXITSTATUS(status) : ended_by_signal;
    if (own == 0)
      return;
    code_ = code_ == 0 ? own : code_;
    failed_ = failed_.value_or(Clock::now());
    if (WIFEXITED(status)) {
      if (job_.failed)
        job_.failed(static_cast<int>(rank), own);
      return;
    }
    tell_lost(rank);
    if (job_.say)
      job_.say(fmt::format("rank {} was ended by signal {} ({}){}", rank, WTERMSIG(status),
                           strsignal(WTERMSIG(status)),
                           is_stopped(rank) ? ", because it had been stopped" : ""));
  }

  bool is_stopped(std::size_t rank) const { return stopped_for_[rank].count() > 0; }
  void tell_lost(std::size_t rank) const {
    if (job_.lost)
      job_.lost(static_cast<int>(rank));
  }

  const LocalJob& job_;
  std::vector<pid_t> ranks_;                  // 0 if it has ended
  std::vector<Clock::duration> stopped_for_;  // 0 if it runs
  std::size_t left_;
  int code_ = 0;
  bool killed_ = false;
  std::optional<Clock::time_point> failed_;
  Clock::time_point last_look_ = Clock::now();
};

}  // namespace

bool is_alone_in_local_job() { return std::getenv(variable_of_alone) != nullptr; }

int run_local_job(const LocalJob& job) {
  hear_of_children();
  Rendezvous rendezvous;
  Children children(job, start(job, {.rendezvous = rendezvous.take_end_of_ranks(),
                                     .rendezvous_of_launcher = rendezvous.end_of_launcher(),
                                     .forks = job.main && has_one_thread()}));
  bool passed_on = false;
  while (children.any()) {
    children.look();
    if (job.stop && !passed_on && job.stop()) {
      children.signal_all(SIGTERM);
      passed_on = true;
    }
    // A rank that has not met the others cannot learn that one is lost.
    const auto grace = rendezvous.is_pending() ? std::min(job.grace, to_say_why) : job.grace;
    if (children.failed() && !children.were_killed() && Clock::now() - *children.failed() > grace)
      children.kill_late();
    std::this_thread::sleep_for(between_looks);
  }
  return children.code();
}

}  // namespace pipewright::exec
