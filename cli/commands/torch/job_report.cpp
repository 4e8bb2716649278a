#include "commands/torch/job_report.hpp"

#include "exit_code.hpp"
#include "pipewright/loop/stopped.hpp"
#include "pipewright/plan/error.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {

int with_job_report(loop::Membership& members, const std::function<int()>& part) {
  try {
    return part();
  } catch (const exec::Aborted& aborted) {
    if (interrupted())
      return Interrupted;
    if (members.job() == nullptr || members.job()->reports_failure())
      say(aborted.what());
    return NegativeAnswer;
  } catch (const loop::Stopped&) {
    if (members.job() == nullptr)
      throw;
    return Interrupted;
  } catch (const std::exception& failure) {
    // The others must not wait for this rank; the report of the job is printed once.
    if (members.job() == nullptr)
      throw;
    members.job()->abort(failure.what());
    if (members.job()->reports_failure())
      say(failure.what());
    return dynamic_cast<const plan::InputError*>(&failure) != nullptr ? BadInput : NegativeAnswer;
  }
}

}  // namespace pipewright::cli
