#include "commands/torch/job.hpp"

#include "commands/torch/devices.hpp"
#include "exit_code.hpp"
#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/job/local_job.hpp"
#include "pipewright/loop_torch/permanent_straggler.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/stopped.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"
#include "process/own_words.hpp"

namespace pipewright::cli {
namespace {

/// The time that ranks may take to end each other once they know that one has failed.
constexpr std::chrono::seconds to_end_each_other{10};

MainFunction own_main = nullptr;

}  // namespace

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

loop::MembershipOptions membership_options(const DeviceOptions& device, const TimeLimits& limits) {
  return {.on_gpu = device.on_gpu(),
          .timeout = milliseconds_of(limits.timeout_s),
          .stall = milliseconds_of(limits.stall_s),
          .give_up = give_up};
}

void say_clocks(const loop::MeasuredTimeline& measured) {
  if (measured.clocks)
    say(fmt::format("one clock for {} ranks: offsets known to {:.0f} us, {:.0f} us unexplained",
                    measured.timeline.ranks, measured.clocks->uncertainty.value * 1e6,
                    measured.clocks->residual.value * 1e6));
}

void set_main_of_ranks(MainFunction main) { own_main = main; }

std::function<int(const std::vector<std::string>& words)> main_of_ranks(
    const DeviceOptions& device) {
  if (own_main == nullptr || device.on_gpu())
    return {};
  return [](const std::vector<std::string>& words) {
    std::vector<const char*> arguments;
    for (const std::string& word : words)
      arguments.push_back(word.c_str());
    return own_main(static_cast<int>(arguments.size()), arguments.data());
  };
}

int start_as_processes(int count, const DeviceOptions& device, const TimeLimits& limits) {
  std::vector<std::string> words = own_words();
  std::erase(words, "--processes");
  catch_interrupts();
  const int code =
      exec::run_local_job({.main = main_of_ranks(device),
                           .words = std::move(words),
                           .ranks = count,
                           .grace = milliseconds_of(limits.timeout_s) + to_end_each_other,
                           .stop = [] { return interrupted().load(); },
                           .say = say});
  return interrupted() ? static_cast<int>(Interrupted) : code;
}

int code_of_part(loop::Membership& members, const std::function<int()>& part) {
  const auto reports = [&] { return members.job() == nullptr || members.job()->reports_failure(); };
  try {
    return part();
  } catch (const exec::Aborted& aborted) {
    if (interrupted())
      return Interrupted;
    if (reports())
      say(aborted.what());
    return NegativeAnswer;
  } catch (const plan::Stopped&) {
    if (!members.in_job())
      throw;
    return Interrupted;
  } catch (const std::exception& failure) {
    if (!members.in_job())
      throw;
    if (reports())
      say(failure.what());
    if (dynamic_cast<const loop::SlowRankEnds*>(&failure) != nullptr)
      return PermanentStraggler;
    return dynamic_cast<const plan::InputError*>(&failure) != nullptr ? BadInput : NegativeAnswer;
  }
}

}  // namespace pipewright::cli
