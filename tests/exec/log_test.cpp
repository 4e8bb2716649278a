#include "pipewright/exec/log.hpp"

#include <torch/nn.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace log_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
namespace fs = std::filesystem;

/// A temporary folder; logging is off again when it is removed.
struct LogFolder {
  fs::path path = fs::temp_directory_path() / ("pipewright-log-" + std::to_string(::getpid()));
  LogFolder() { fs::create_directories(path); }
  ~LogFolder() {
    set_log({"", ""});
    fs::remove_all(path);
  }
  std::vector<std::string> lines(const std::string& file) const {
    std::vector<std::string> lines;
    std::ifstream stream(path / file);
    for (std::string line; std::getline(stream, line);)
      lines.push_back(line.substr(line.find(' ') + 1));  // without the time
    return lines;
  }
};

void train_a_step() {
  const auto times = [](double by) { return [by](const at::Tensor& x) { return x * by; }; };
  PipelineEngine engine(
      {{module_layer("a", [] { return torch::nn::Linear(2, 2); }), function_layer("b", times(2))},
       {.topology = plan::pipe_data_topology(2, 1),
        .partition = std::string("uniform"),
        .loss = [](const Tensors& outputs, const Tensors&) { return outputs.at(0).sum(); }}},
      {.train_batch_size = 1, .microbatch_size = 1});
  engine.step({.inputs = {at::ones({1, 2})}, .targets = {at::ones({1, 2})}});
}

TEST_CASE("Each rank's file logs its actions, with the current instruction", "[exec]") {
  const LogFolder folder;
  set_log({"schedule=debug,transfers=debug,data=debug", (folder.path / "{rank}.log").string()});
  train_a_step();
  CHECK(
      folder.lines("1.log") ==
      std::vector<std::string>{
          "rank 1 step 0 [schedule info] begins a step",
          "rank 1 step 0 1LOAD0 [schedule debug] begins",
          "rank 1 step 0 1LOAD0 [data debug] reads targets of microbatch 0 of step 0",
          "rank 1 step 0 1RECV_F0 [schedule debug] begins",
          "rank 1 step 0 1RECV_F0 [transfers debug] has 1 tensor, 8 bytes from rank 0",
          "rank 1 step 0 1F0 [schedule debug] begins", "rank 1 step 0 1B0 [schedule debug] begins",
          "rank 1 step 0 1SEND_B0 [schedule debug] begins",
          "rank 1 step 0 1SEND_B0 [transfers debug] sends 1 tensor, 8 bytes to rank 0",
          "rank 1 step 0 1STEP [schedule debug] begins", "rank 1 step 0 [schedule info] ends it"});
  CHECK(folder.lines("0.log").size() == 11);
}

TEST_CASE("A log has the requested subjects and levels, and no others", "[exec]") {
  const LogFolder folder;
  set_log({"all=debug,schedule=info,data=off", (folder.path / "all.log").string()});
  CHECK(logs(LogSubject::Job, LogLevel::Debug));
  CHECK(logs(LogSubject::Schedule, LogLevel::Info));
  CHECK_FALSE(logs(LogSubject::Schedule, LogLevel::Debug));
  CHECK_FALSE(logs(LogSubject::Data, LogLevel::Info));
  train_a_step();
  const auto lines = folder.lines("all.log");
  const auto with = [&](const std::string& text) {
    return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  CHECK(with("[schedule info]") == 4);
  CHECK(with("[transfers debug]") == 4);
  CHECK(with("[collectives debug]") == 4);
  CHECK(lines.size() == 12);
  set_log({"", ""});
  train_a_step();
  CHECK(folder.lines("all.log").size() == 12);
}

TEST_CASE("An invalid log option is rejected, and the previous log continues", "[exec]") {
  const LogFolder folder;
  set_log({"job", (folder.path / "kept.log").string()});
  CHECK(test::error_of([] {
          set_log({"shedule", ""});
        }) ==
        "\"shedule\" is not a subject of the log, did you mean \"schedule\"? (possible: all, job, "
        "schedule, transfers, collectives, data, checkpoints)");
  CHECK(test::error_of([] {
          set_log({"job=loud", ""});
        }) == "\"loud\" is not a level of the log (possible: off, info, debug)");
  CHECK(test::error_of([] {
          set_log({"job", "/no/such/folder/log"});
        }) == "the log file /no/such/folder/log cannot be opened: No such file or directory");
  log(LogSubject::Job, LogLevel::Info, "still {}", "here");
  CHECK(folder.lines("kept.log") == std::vector<std::string>{"[job info] still here"});
}

}  // namespace log_test
