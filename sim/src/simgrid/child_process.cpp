#include "simgrid/child_process.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include "pipewright/plan/error.hpp"

namespace pipewright::sim {
namespace {

constexpr int done_code = 0, failed_code = 1, input_error_code = 2;

using File = std::unique_ptr<std::FILE, decltype(&std::fclose)>;

/// Opens an unnamed file that is deleted when it is closed. Parent and child share it.
File temporary_file() {
  File file(std::tmpfile(), &std::fclose);
  if (!file)
    throw std::system_error(errno, std::generic_category(),
                            "cannot create a temporary file for SimGrid");
  return file;
}

template <class Values>
Values content(std::FILE* file) {
  std::fseek(file, 0, SEEK_END);
  constexpr auto size = sizeof(typename Values::value_type);
  Values values(static_cast<std::size_t>(std::ftell(file)) / size, {});
  std::rewind(file);
  values.resize(std::fread(values.data(), size, values.size(), file));
  return values;
}

std::FILE* last_words = nullptr;  // of this process, if it is a child

/// Writes the result of `body` to `answer`, or its error to `messages`. Does not return.
[[noreturn]] void run_child(const std::function<std::vector<double>()>& body, std::FILE* answer,
                            std::FILE* messages) {
  last_words = answer;
  // The parent's signal handlers report on the parent.
  for (const int signal : {SIGINT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, SIG_DFL);
  ::dup2(::fileno(messages), STDERR_FILENO);
  int status = done_code;
  try {
    const std::vector<double> values = body();
    if (std::fwrite(values.data(), sizeof(double), values.size(), answer) != values.size() ||
        std::fflush(answer) != 0)
      throw std::runtime_error("SimGrid's answer could not be written");
  } catch (const plan::InputError& error) {
    fmt::print(messages, "{}", error.what());
    status = input_error_code;
  } catch (const std::exception& error) {
    fmt::print(messages, "{}", error.what());
    status = failed_code;
  }
  std::fflush(messages);
  ::_exit(status);  // neither destructors nor exit handlers of the parent
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "waitpid");
  return status;
}

}  // namespace

std::vector<double> in_child_process(const std::function<std::vector<double>()>& body) {
  const File answer = temporary_file(), messages = temporary_file();
  std::fflush(nullptr);  // otherwise the child would write our buffers again
  const pid_t child = ::fork();
  if (child < 0)
    throw std::system_error(errno, std::generic_category(), "cannot start a process for SimGrid");
  if (child == 0)
    run_child(body, answer.get(), messages.get());

  const int status = wait_for(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == done_code)
    return content<std::vector<double>>(answer.get());
  const std::string message = content<std::string>(messages.get());
  if (WIFEXITED(status) && WEXITSTATUS(status) == input_error_code)
    throw plan::InputError(message);
  if (const std::string words = content<std::string>(answer.get()); !words.empty())
    throw plan::InputError(words);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)  // the way in which SimGrid rejects its
                                                           // input
    throw plan::InputError(fmt::format("SimGrid: {}", message.substr(0, message.find('\n'))));
  throw std::runtime_error(fmt::format("SimGrid's process ended without an answer{}{}",
                                       message.empty() ? "" : ": ", message));
}

void set_last_words(const std::string& message) {
  std::rewind(last_words);
  if (::ftruncate(::fileno(last_words), 0) == 0)
    fmt::print(last_words, "{}", message);
  std::fflush(last_words);
}

}  // namespace pipewright::sim
