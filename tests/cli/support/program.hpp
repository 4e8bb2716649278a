// Runs the built program as a user would.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/temp_folder.hpp"

namespace pipewright::test {

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

struct Result {
  int exit_code = -1;  // 128 + signal if a signal ended it
  std::string out;
  std::string err;
};

/// A started program; its output goes to files, so that it never blocks. It does not use costs that
/// other tests have measured, unless the environment names their folder.
class Running {
 public:
  explicit Running(const std::vector<std::string>& arguments,
                   const std::map<std::string, std::string>& environment = {})
      : pid_(fork()) {
    if (pid_ != 0)
      return;
    setenv("XDG_CACHE_HOME", (folder_.path() / "cache").c_str(), /*overwrite=*/1);
    for (const auto& [name, value] : environment)
      setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    std::vector<char*> raw{const_cast<char*>(PIPEWRIGHT_PROGRAM)};
    for (const std::string& argument : arguments)
      raw.push_back(const_cast<char*>(argument.c_str()));
    raw.push_back(nullptr);
    if (std::freopen((folder_.path() / "out").c_str(), "w", stdout) == nullptr)
      _exit(99);
    if (std::freopen((folder_.path() / "err").c_str(), "w", stderr) == nullptr)
      _exit(99);
    execv(PIPEWRIGHT_PROGRAM, raw.data());
    _exit(99);
  }

  void signal(int number) const { kill(pid_, number); }
  /// Returns the children in the order in which they were started.
  std::vector<pid_t> children() const {
    const std::string id = std::to_string(pid_);
    std::ifstream list("/proc/" + id + "/task/" + id + "/children");
    return {std::istream_iterator<pid_t>(list), {}};
  }
  std::string err() const { return text_of(folder_.path() / "err"); }

  Result wait() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return {code, text_of(folder_.path() / "out"), err()};
  }

 private:
  TempFolder folder_;
  pid_t pid_;
};

inline Result run_program(const std::vector<std::string>& arguments) {
  return Running(arguments).wait();
}

inline const std::string gpt_scenario = PIPEWRIGHT_SOURCE_DIR "/scenarios/gpt-text/scenario.json";
inline const std::string alexnet_scenario =
    PIPEWRIGHT_SOURCE_DIR "/scenarios/alexnet-cifar10/scenario.json";

/// Returns the arguments for the shipped GPT, made small enough for a test; more arguments follow.
inline std::vector<std::string> small_gpt(const std::string& command,
                                          const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{command, gpt_scenario};
  for (const char* assignment :
       {"model.blocks=4", "model.hidden=32", "model.heads=2", "model.sequence=16",
        "training.steps=4", "training.microbatch_size=2", "pipeline.microbatches=4",
        "profile.least_repeats=2", "profile.most_repeats=2"})
    arguments.insert(arguments.end(), {"--set", assignment});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace pipewright::test
