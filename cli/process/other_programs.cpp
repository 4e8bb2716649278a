#include "process/other_programs.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "exit_code.hpp"
#include "pipewright/loop/estimated_costs.hpp"
#include "pipewright/loop/stopped.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"
#include "process/own_words.hpp"
#include "process/program.hpp"

namespace pipewright::cli {
namespace {

/// Beside this program, or where `cmake --install` puts it. `purpose`: what it is for, in words.
std::string find_program(const std::string& name, const char* purpose) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& place : {folder / name, folder / "../libexec/pipewright" / name})
    if (std::filesystem::exists(place))
      return place.string();
  throw plan::InputError(fmt::format("{}, which was not built or installed: there is no {} in {}",
                                     purpose, name, folder.string()));
}

std::string torch_program() {
  return find_program("pipewright-torch",
                      "run, train, save, profile and costs that are measured now need LibTorch");
}

[[noreturn]] void give_up(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

/// A file without a name that holds `text`, and that a child can open by its descriptor.
int nameless_file(const std::string& text) {
  const int file = memfd_create("scenario", 0);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    give_up("the scenario cannot be passed to it");
  return file;
}

/// All that the child writes. Who asks this process to stop asks the child too.
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

int exit_code_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status))
    return WEXITSTATUS(status);
  say(fmt::format("pipewright-torch was ended by signal {} ({})", WTERMSIG(status),
                  strsignal(WTERMSIG(status))));
  return NegativeAnswer;
}

/// What the program prints on stdout; its messages pass through.
std::string output_of(const std::string& program, const std::vector<std::string>& words) {
  int ends[2];
  if (pipe(ends) != 0)
    give_up("no pipe");
  const pid_t child = fork();
  if (child < 0)
    give_up("pipewright-torch cannot start");
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
  if (const int code = exit_code_of(child); code == Interrupted)
    throw loop::Stopped{};
  else if (code != Done)
    throw ProgramFailed{code};
  return text;
}

plan::LayerCosts measured_costs(const plan::Scenario& scenario) {
  const std::string program = torch_program();
  const int file = nameless_file(to_json(scenario).dump());
  const std::string text = output_of(
      program,
      {"pipewright", "profile", fmt::format("/proc/self/fd/{}", file), "--over", "0", "--json"});
  close(file);
  return plan::layer_costs_from_json(plan::JsonDocument::parse(text, "measured costs"));
}

}  // namespace

int become_torch_program() {
  become(torch_program(), own_words());
  give_up("pipewright-torch cannot start");
}

int become_simgrid_program() {
  become(find_program("pipewright-simgrid", "--engine simgrid needs SimGrid"), own_words());
  give_up("pipewright-simgrid cannot start");
}

plan::LayerCosts costs_for(const plan::Scenario& scenario, const std::string& file) {
  if (file.empty() && loop::has_analytic_costs(scenario)) {
    say(loop::estimate_note(scenario));
    return loop::estimated_costs(scenario);
  }
  if (file.empty())
    return measured_costs(scenario);
  return plan::layer_costs_from_json(plan::JsonDocument::read(file));
}

}  // namespace pipewright::cli
