#include "commands/torch/devices.hpp"

#include <cstdlib>

#include "exit_code.hpp"
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

void give_up(const std::string& report) {
  if (!report.empty())
    say(report);
  std::_Exit(NegativeAnswer);
}

}  // namespace pipewright::cli
