#include "print/check_report.hpp"

#include <fmt/format.h>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/trace/files/schedule_file.hpp"

namespace pipewright::cli {
namespace {

constexpr std::size_t most_warnings = 5;

}  // namespace

std::string check_report(const std::string& file, const trace::LoweredSchedule& checked) {
  const plan::Schedule& schedule = checked.schedule;
  std::string text =
      fmt::format("{}: sound: {}\n", file,
                  plan::known_name(schedule).value_or(fmt::format(
                      "{} ranks, {} stages, {} microbatches, unknown schedule",
                      schedule.ranks.size(), plan::stage_count(schedule), schedule.microbatches)));
  const plan::Placement& placement = checked.program.placement;
  if (placement.is_bidirectional())
    text += fmt::format("microbatches take {} routes: some stages are on several ranks\n",
                        placement.routes.size());
  for (const trace::LayoutDeadlock& found : trace::deadlocks_by_layout(checked.program))
    text += fmt::format("communicators {:<4}  {:<10}  {}\n", found.layout, found.transfers,
                        found.cycle.value_or("no deadlock"));
  const auto lines = trace::warnings_of(checked.program);
  for (std::size_t i = 0; i < lines.size() && i < most_warnings; ++i)
    text += "warning: " + lines[i] + "\n";
  if (lines.size() > most_warnings)
    text += fmt::format("warning: {} more\n", lines.size() - most_warnings);
  return text;
}

}  // namespace pipewright::cli
