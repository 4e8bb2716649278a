#include "commands/torch/devices.hpp"

#include <cstdlib>

#include "exit_code.hpp"
#include "pipewright/exec/log.hpp"
#include "pipewright/plan/error.hpp"
#include "print/console.hpp"

namespace pipewright::cli {

loop::DeviceChoice choice_of(const DeviceOptions& options) {
  return {.gpu = options.on_gpu(), .own_multiprocessors = options.own_multiprocessors};
}

void open_devices(const DeviceOptions& options, plan::CpuBranch branch) {
  loop::open_devices(choice_of(options), branch);
  if (options.own_multiprocessors && !options.on_gpu())
    throw plan::InputError("--own-multiprocessors needs --device cuda");
}

void open_log(const LogWords& log) {
  if (log.subjects.empty() && log.file.empty())
    return;
  exec::set_log({log.subjects, log.file});
  ::setenv("PIPEWRIGHT_LOG", log.subjects.c_str(), 1);
  ::setenv("PIPEWRIGHT_LOG_FILE", log.file.c_str(), 1);
}

void give_up(const std::string& report) {
  if (!report.empty())
    say(report);
  std::_Exit(NegativeAnswer);
}

}  // namespace pipewright::cli
