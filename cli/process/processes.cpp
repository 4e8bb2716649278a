#include "process/processes.hpp"

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "exit_code.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"
#include "process/own_words.hpp"

namespace pipewright::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// A port that nothing listens on now.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool found = socket >= 0 && bind(socket, generic, length) == 0 &&
                     getsockname(socket, generic, &length) == 0;
  if (socket >= 0)
    close(socket);
  if (!found)
    throw std::runtime_error(fmt::format("no free port: {}", std::strerror(errno)));
  return ntohs(address.sin_port);
}

/// In the child: never returns.
[[noreturn]] void become_rank(int rank, int count, int port,
                              const std::vector<std::string>& words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // ranks do not outlive who started them
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), /*overwrite=*/1);
  };
  set("RANK", std::to_string(rank));
  set("LOCAL_RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(count));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", std::to_string(port));
  become("/proc/self/exe", words);
  _exit(CannotStart);
}

/// What a rank's end says: its exit code, or 1 and a line when a signal ended it.
int code_of(int status, std::size_t rank) {
  if (WIFEXITED(status))
    return WEXITSTATUS(status);
  say(fmt::format("rank {} was ended by signal {} ({})", rank, WTERMSIG(status),
                  strsignal(WTERMSIG(status))));
  return NegativeAnswer;
}

}  // namespace

int run_as_processes(int count, double timeout_s) {
  const int port = free_port();
  std::vector<std::string> words = own_words();
  std::erase(words, "--processes");
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t child = fork();
    if (child == 0)
      become_rank(rank, count, port, words);
    if (child < 0)
      throw std::runtime_error(fmt::format("rank {} cannot start: {}", rank, std::strerror(errno)));
    ranks.push_back(child);
  }
  catch_interrupts();

  // Ranks end each other when one fails; who does not is ended here, some time after the rest.
  int code = Done;
  std::size_t left = ranks.size();
  std::optional<Clock::time_point> failed;
  bool passed_on = false;
  while (left > 0) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      int status = 0;
      if (ranks[rank] == 0 || waitpid(ranks[rank], &status, WNOHANG) != ranks[rank])
        continue;
      ranks[rank] = 0;
      --left;
      if (const int own = code_of(status, rank); own != Done) {
        code = code == Done ? own : code;
        failed = failed.value_or(Clock::now());
      }
    }
    const auto signal_all = [&](int signal) {
      for (const pid_t rank : ranks)
        if (rank != 0)
          kill(rank, signal);
    };
    if (interrupted() && !std::exchange(passed_on, true))
      signal_all(SIGTERM);
    if (failed && Clock::now() - *failed > std::chrono::duration<double>(timeout_s + 10))
      signal_all(SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return interrupted() ? static_cast<int>(Interrupted) : code;
}

}  // namespace pipewright::cli
