#include "commands/torch/work_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipewright/loop_torch/measured_costs.hpp"

namespace pipewright::cli {
namespace {

using Kind = plan::InstructionKind;
using profiler::KernelSum;
using profiler::WorkPart;
using profiler::WorkReport;

constexpr std::size_t most_kernels = 12;
constexpr std::size_t widest_name = 60;

double us(plan::Seconds time) { return 1e6 * time.value; }
double mb(plan::Bytes bytes) { return static_cast<double>(bytes.value) / 1e6; }

const plan::LayerCost& cost_of(const plan::LayerCosts& costs, int layer) {
  const auto at = static_cast<std::size_t>(layer);
  return at < costs.layers.size() ? costs.layers[at] : costs.loss;
}

/// Returns the peak memory of this part, and the memory that stays after it.
std::string memory_cells(const plan::LayerCost& cost, Kind kind) {
  if (kind == Kind::Forward)
    return fmt::format("{:9.3f} {:9.3f}", mb(cost.forward_peak), mb(cost.activation));
  if (kind == Kind::InputGradient)
    return fmt::format(
        "{:9.3f} {:9.3f}", mb(cost.input_gradient_peak),
        mb(cost.activation - cost.freed_by_input_gradient + cost.gradients_for_weights));
  return fmt::format("{:9.3f} {:9.3f}", mb(cost.weight_gradient_peak), 0.0);
}

std::string part_row(const WorkReport& report, const WorkPart& part,
                     const plan::LayerCosts& costs) {
  const std::string name = fmt::format("{:<14} {:<4}", loop::layer_name(costs, part.layer),
                                       plan::traits_of(part.kind).word);
  const std::string memory = memory_cells(cost_of(costs, part.layer), part.kind);
  const auto& time = part.time;
  if (!report.on_device)
    return fmt::format("{} {:10.1f} {:10.1f} {:10.1f} {:8} {}\n", name, us(time.device),
                       us(time.launch), us(time.host), time.count, memory);
  return fmt::format("{} {:10.1f} {:10.1f} {:10.1f} {:10.1f} {:8} {}{}\n", name, us(time.device),
                     us(time.launch), us(time.waiting), us(time.host), time.count, memory,
                     time.is_launch_bound() ? "  launch-bound" : "");
}

std::string part_rows(const WorkReport& report, const plan::LayerCosts& costs) {
  std::string text =
      report.on_device
          ? fmt::format("{:<14} {:<4} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9} {:>9}\n", "layer", "",
                        "device", "launching", "waiting", "host", "kernels", "peak", "kept")
          : fmt::format("{:<14} {:<4} {:>10} {:>10} {:>10} {:>8} {:>9} {:>9}\n", "layer", "",
                        "operators", "between", "host", "calls", "peak", "kept");
  text += report.on_device
              ? fmt::format("{:<14} {:<4} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9} {:>9}\n", "", "",
                            "us", "us", "us", "us", "", "MB", "MB")
              : fmt::format("{:<14} {:<4} {:>10} {:>10} {:>10} {:>8} {:>9} {:>9}\n", "", "", "us",
                            "us", "us", "", "MB", "MB");
  for (const WorkPart& part : report.parts)
    if (part.layer >= 0 && (part.kind == Kind::Forward || part.kind == Kind::InputGradient ||
                            part.kind == Kind::WeightGradient))
      text += part_row(report, part, costs);
  return text;
}

std::string kernel_rows(const WorkReport& report) {
  plan::Seconds all;
  for (const KernelSum& kernel : report.kernels)
    all += kernel.time;
  std::string text = fmt::format("{:<60} {:>7} {:>10} {:>6} {:>10}\n",
                                 report.on_device ? "kernel, of a pass" : "operator, of a pass",
                                 "count", "us", "%", "MB moved");
  for (std::size_t k = 0; k < std::min(most_kernels, report.kernels.size()); ++k) {
    const KernelSum& kernel = report.kernels[k];
    text +=
        fmt::format("{:<60} {:7.1f} {:10.1f} {:6.1f} {:>10}\n", kernel.name.substr(0, widest_name),
                    kernel.count, us(kernel.time), 100 * (kernel.time / all),
                    kernel.moved ? fmt::format("{:.3f}", mb(*kernel.moved)) : "-");
  }
  if (report.kernels.size() > most_kernels)
    text += fmt::format("and {} more, all in --json\n", report.kernels.size() - most_kernels);
  return text;
}

std::string launch_bound_line(const WorkReport& report, const plan::LayerCosts& costs) {
  std::vector<std::string> parts;
  for (const WorkPart& part : report.parts)
    if (report.on_device && part.layer >= 0 && part.time.is_launch_bound())
      parts.push_back(fmt::format("{} {}", loop::layer_name(costs, part.layer),
                                  plan::traits_of(part.kind).word));
  if (parts.empty())
    return "";
  return fmt::format(
      "launch-bound: {}\nthere the GPU waits for this host, so a busier or slower host takes "
      "longer\n",
      fmt::join(parts, ", "));
}

std::string lost_lines(const profiler::LostRecords& lost) {
  std::string text;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count > 0)
      text += fmt::format("{} {}\n", count, what);
  };
  add(lost.dropped,
      "records were dropped because buffers were full: times and counts are too small");
  add(lost.unread, "bytes of records could not be read: times and counts are too small");
  add(lost.unclaimed, "of all passes were launched between actions");
  add(lost.without_call, "kernels, copies or sets without a record of their launch");
  add(lost.without_times, "kernels, copies or sets that the device could not time");
  add(lost.late_buffers, "buffers were allocated during the recording, which slows it down");
  add(lost.missing_buffers,
      "buffers were not returned when records were read: their records are missing");
  constexpr std::size_t most_strays = 8;
  for (std::size_t s = 0; s < std::min(most_strays, lost.strays.size()); ++s)
    text += fmt::format("  {} of {}{}\n", lost.strays[s].count, lost.strays[s].name,
                        lost.strays[s].call.empty() ? "" : ", launched by " + lost.strays[s].call);
  if (lost.strays.size() > most_strays)
    text += fmt::format("  and {} more\n", lost.strays.size() - most_strays);
  return text;
}

}  // namespace

std::string work_table(const WorkReport& report, const plan::LayerCosts& costs) {
  std::string text = fmt::format("\nbreakdown of the times, by {}\n", report.source);
  text += part_rows(report, costs);
  text += launch_bound_line(report, costs);
  text += "\n" + kernel_rows(report) + lost_lines(report.lost);
  if (report.overhead)
    text += fmt::format("recording changed a pass by {:+.1f} %, measured alternately\n",
                        100 * *report.overhead);
  return text;
}

std::string work_table(const loop::StepKernels& kernels) {
  std::string text = fmt::format("\nbreakdown of a step, by {}\n", kernels.source);
  text += fmt::format("{:>4} {:<14} {:>6} {:>10} {:>10} {:>10} {:>10} {:>8}\n", "rank", "actions",
                      "times", kernels.on_device ? "device" : "operators",
                      kernels.on_device ? "launching" : "between", "waiting", "host", "kernels");
  text += fmt::format("{:>4} {:<14} {:>6} {:>10} {:>10} {:>10} {:>10}\n", "", "", "", "ms", "ms",
                      "ms", "ms");
  const auto ms = [](plan::Seconds time) { return 1e3 * time.value; };
  for (const profiler::RankWork& work : profiler::work_by_rank(kernels.pass))
    text += fmt::format("{:>4} {:<14} {:>6} {:10.3f} {:10.3f} {:10.3f} {:10.3f} {:8}\n", work.rank,
                        plan::traits_of(work.kind).word, work.times, ms(work.time.device),
                        ms(work.time.launch), ms(work.time.waiting), ms(work.time.host),
                        work.time.count);
  text += lost_lines(profiler::work_report({kernels.pass}).lost);
  if (kernels.overhead)
    text += fmt::format("recording changed a step by {:+.1f} %, measured alternately\n",
                        100 * *kernels.overhead);
  return text;
}

}  // namespace pipewright::cli
