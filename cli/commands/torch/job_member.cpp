#include "commands/torch/job_member.hpp"

#include "commands/torch/devices.hpp"
#include "commands/torch/torch_costs.hpp"
#include "exit_code.hpp"
#include "pipewright/exec/checkpoint/crc32c.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/loop/stopped.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"
#include "process/processes.hpp"

namespace pipewright::cli {
namespace {

std::string checksum(const std::string& text) {
  return fmt::format("{:08x}", exec::crc32c(text.data(), text.size()));
}

}  // namespace

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

loop::MembershipOptions membership_options(const DeviceOptions& device, const Patience& patience) {
  return {.on_gpu = device.on_gpu(),
          .timeout = milliseconds_of(patience.timeout_s),
          .stall = milliseconds_of(patience.stall_s),
          .give_up = give_up};
}

loop::Workload workload_of(plan::Scenario& scenario, const DeviceOptions& device,
                           loop::Membership& members) {
  const int ranks = plan::ranks_of_job(scenario.pipeline);
  loop::Workload workload(scenario, loop::devices_for(choice_of(device), ranks, members.job()));
  if (members.in_job() || loop::lie_apart(workload.devices()))
    scenario.pipeline.hand_over = plan::HandOver::Copy;
  return workload;
}

plan::LayerCosts common_costs(const plan::Scenario& scenario, const loop::Workload& workload,
                              const std::string& file, const loop::Membership& members) {
  if (!members.in_job() || !file.empty())
    return costs_for(scenario, workload, file);
  std::string measured;
  if (members.is_first())
    measured = to_json(costs_for(scenario, workload, "")).dump();
  return plan::layer_costs_from_json(
      plan::JsonDocument::parse(members.from_first(measured), "costs of rank 0"));
}

std::string given(bool is_given) { return is_given ? "given" : "not given"; }

void say_clocks(const loop::MeasuredTimeline& measured) {
  if (measured.clocks)
    say(fmt::format("one clock for {} ranks: offsets known to {:.0f} us, {:.0f} us unexplained",
                    measured.timeline.ranks, measured.clocks->uncertainty.value * 1e6,
                    measured.clocks->residual.value * 1e6));
}

void require_one_plan(loop::Membership& members, const plan::Scenario& scenario,
                      const loop::Plan& plan, const loop::Workload& workload,
                      const DeviceOptions& device, const exec::Facts& options) {
  if (!members.in_job())
    return;
  plan::Scenario elsewhere = scenario;
  elsewhere.data.path.clear();  // each machine has it where it likes
  exec::Facts facts{
      {"version", PIPEWRIGHT_VERSION},
      {"scenario", checksum(to_json(elsewhere).dump())},
      {"model", checksum(to_json(model_of(scenario)).dump())},
      {"partition", plan::to_string(plan.partition.boundaries)},
      {"Program", checksum(to_json(plan.program()).dump())},
      {"--device", device.device},
      {"computed with (training.cpu_branch)", exec::device_in_words(workload.device())}};
  facts.insert(facts.end(), options.begin(), options.end());
  exec::require_agreement(*members.job(), facts);
}

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

int as_job(const plan::Scenario& scenario, bool processes, const DeviceOptions& device,
           const Patience& patience, const Part& part) {
  if (processes && !exec::job_from_environment())
    return run_as_processes(plan::ranks_of_job(scenario.pipeline), patience.timeout_s);
  catch_interrupts();
  loop::Membership members(scenario, membership_options(device, patience));
  return with_job_report(members, [&] { return part(scenario, members); });
}

}  // namespace pipewright::cli
