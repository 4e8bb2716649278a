#include "processes.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "pipewright/exec/job/environment.hpp"
#include "support/catch.hpp"

namespace pipewright::test {
namespace {

constexpr const char* variable = "PIPEWRIGHT_TEST_RANK";
constexpr int output_descriptor = 3;     // of the child
constexpr unsigned alarm_seconds = 300;  // far longer than an overloaded machine needs

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Starts a program whose output descriptor is the end of a pipe; its standard output is discarded.
int spawn(std::vector<std::string> command, const std::string& place, int pipe_end) {
  std::vector<std::string> variables{std::string(variable) + "=" + place};
  for (char** other = environ; *other != nullptr; ++other)
    variables.emplace_back(*other);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_end, output_descriptor);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t id = 0;
  const int error = ::posix_spawnp(&id, command.front().c_str(), &actions, nullptr,
                                   pointers_to(command).data(), pointers_to(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw std::runtime_error("cannot start " + command.front());
  return id;
}

}  // namespace

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(socket);
  return ntohs(address.sin_port);
}

std::optional<RankPlace> rank_place() {
  const char* const text = std::getenv(variable);
  if (text == nullptr)
    return std::nullopt;
  ::alarm(alarm_seconds);
  SUCCEED("it is the parent that checks what a rank says");
  RankPlace place;
  exec::JobEnvironment& environment = place.environment;
  std::istringstream words(text);
  words >> environment.rank >> environment.size >> environment.port >> environment.address >>
      place.argument;
  environment.local_rank = environment.rank;
  environment.launcher = "the test";
  return place;
}

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(output_descriptor, text.data(), text.size()) < 0)
    std::abort();  // the parent has ended
}

Ranks::Ranks(const RanksSetup& setup) {
  const int port = free_port();
  for (int rank = 0; rank < setup.size; ++rank) {
    int ends[2] = {};
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw std::runtime_error("no pipe");
    std::vector<std::string> command;
    if (const auto front = setup.commands.find(rank); front != setup.commands.end())
      command = front->second;
    command.push_back(std::filesystem::read_symlink("/proc/self/exe"));
    command.push_back(setup.test_case);
    std::ostringstream place;
    place << rank << ' ' << setup.size << ' ' << port << ' ' << setup.address << ' '
          << setup.argument;
    processes_.push_back({spawn(command, place.str(), ends[1]), ends[0], "", {}});
    ::close(ends[1]);
  }
}

Ranks::~Ranks() {
  for (Process& process : processes_) {
    if (!process.status) {
      ::kill(process.id, SIGKILL);
      ::waitpid(process.id, nullptr, 0);
    }
    ::close(process.pipe);
  }
}

bool Ranks::read_more(Process& process) {
  char text[4096];
  const auto count = ::read(process.pipe, text, sizeof text);
  if (count > 0)
    process.output.append(text, static_cast<std::size_t>(count));
  return count > 0;
}

bool Ranks::await_line(int rank, const std::string& line) {
  Process& of_rank = process(rank);
  while (("\n" + of_rank.output).find("\n" + line + "\n") == std::string::npos)
    if (!read_more(of_rank))
      return false;
  return true;
}

void Ranks::signal(int rank, int number) const {
  ::kill(processes_.at(static_cast<std::size_t>(rank)).id, number);
}

std::vector<int> Ranks::ids() const {
  std::vector<int> ids;
  for (const Process& each : processes_)
    ids.push_back(each.id);
  return ids;
}

std::string Ranks::said(int rank) {
  Process& of_rank = process(rank);
  while (read_more(of_rank)) {
  }
  return of_rank.output;
}

int Ranks::status(int rank) {
  Process& of_rank = process(rank);
  if (!of_rank.status) {
    int status = 0;
    ::waitpid(of_rank.id, &status, 0);
    of_rank.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return *of_rank.status;
}

}  // namespace pipewright::test
