#include "process/program_output.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "exit_code.hpp"
#include "pipewright/plan/stopped.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"
#include "process/own_words.hpp"
#include "process/program.hpp"

namespace pipewright::cli {
namespace {

/// Returns everything that the child writes. A request to stop this process is forwarded to the
/// child.
std::string read_all(int descriptor, pid_t child) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t size = read(descriptor, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) {
      if (interrupted())
        kill(child, SIGTERM);
      continue;
    }
    if (size <= 0)
      return text;
    text.append(buffer, static_cast<std::size_t>(size));
  }
}

int exit_code_of(const std::string& program, pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status))
    return WEXITSTATUS(status);
  say(fmt::format("{} was ended by signal {} ({})", program, WTERMSIG(status),
                  strsignal(WTERMSIG(status))));
  return NegativeAnswer;
}

}  // namespace

void throw_errno(const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

std::string output_of(const std::string& program, const std::vector<std::string>& words) {
  int ends[2];
  if (pipe(ends) != 0)
    throw_errno("no pipe");
  const pid_t child = fork();
  if (child < 0)
    throw_errno(program + " cannot start");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    become(program, words);
    _exit(CannotStart);
  }
  close(ends[1]);
  std::string text = read_all(ends[0], child);
  close(ends[0]);
  if (const int code = exit_code_of(words.front(), child); code == Interrupted)
    throw plan::Stopped{};
  else if (code != Done)
    throw ProgramFailed{code};
  return text;
}

}  // namespace pipewright::cli
