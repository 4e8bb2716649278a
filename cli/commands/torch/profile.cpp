#include "commands/torch/devices.hpp"
#include "commands/torch/profiling_line.hpp"
#include "commands/torch/torch_commands.hpp"
#include "commands/torch/work_table.hpp"
#include "exit_code.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/profiler/activity/kernel_table.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "print/console.hpp"
#include "print/costs_table.hpp"
#include "process/interrupt.hpp"
#include "process/program.hpp"
#include "process/program_output.hpp"

namespace pipewright::cli {

namespace {

/// Returns the time of torch's runtime for actions and messages, as measured by Python.
plan::RuntimeCost torch_runtime(const ProfileOptions& options) {
  say("measuring torch's runtime in two processes");
  try {
    const std::string text =
        output_of(options.python, {options.python, "-W", "ignore", "-m", "pipewright._runtime"});
    return plan::runtime_cost_from_json(
        plan::JsonDocument::parse(text, "the measured costs of torch's runtime"));
  } catch (const ProgramFailed&) {
    throw plan::InputError(
        fmt::format("--python {}: needs a Python with torch 2.11 and the module pipewright (pip "
                    "install . in its environment)",
                    options.python));
  }
}

}  // namespace

int profile_scenario(const ProfileOptions& options) {
  if (options.links)
    return profile_links(options);
  if (!options.kernels.empty())
    trace::require_timeline_suffix(options.kernels);
  const auto scenario = read_scenario(options.scenario);
  open_log(options.log);
  open_devices(options.device, scenario.training.cpu_branch);
  const loop::Workload workload(scenario, loop::devices_for(choice_of(options.device), 1, nullptr));
  catch_interrupts();
  const plan::Seconds over{options.over_s < 0 ? options.most_seconds : options.over_s};
  const std::optional<plan::RuntimeCost> runtime =
      options.runtime == "torch" ? std::optional(torch_runtime(options)) : std::nullopt;
  loop::MeasuredLayers measured =
      loop::measure_layers(scenario, workload, interrupted(),
                           {.over = over,
                            .enough_passes = options.over_s < 0 ? options.enough_passes : 0,
                            .progress = profiling_line(scenario, over),
                            .inspected = true,
                            .cache = loop::cache_folder(),
                            .fresh = options.fresh || !options.kernels.empty(),
                            .say = say});
  measured.costs.runtime = runtime;
  if (!measured.why_host_clock.empty())
    say(loop::host_clock_message(measured));
  const auto name_of = [&](int layer) { return loop::layer_name(measured.costs, layer); };
  plan::Json document = to_json(measured.costs);
  if (plan::Json alike = loop::alike_json(measured); !alike.is_null())
    document["identical_layers"] = std::move(alike);
  std::string table = costs_table(measured.costs) + in_words(measured);
  if (measured.inspection) {
    document["work"] = to_json(measured.inspection->report, name_of);
    table += work_table(measured.inspection->report, measured.costs);
  }
  const std::string text = document.dump(2) + "\n";
  if (!options.out.empty())
    plan::write_file(options.out, text);
  if (!options.kernels.empty()) {
    if (!measured.inspection)
      throw plan::InputError("--kernels: the GPU's kernels cannot be recorded");
    trace::write_timeline_file(options.kernels,
                               profiler::kernel_table(measured.inspection->last, name_of));
  }
  fmt::print("{}", options.scenario.json ? text : table);
  return Done;
}

}  // namespace pipewright::cli
