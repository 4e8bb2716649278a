#include "schedule_check.hpp"

#include <fstream>
#include <sstream>

#include "console.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/crossed_transfers.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/program/early_transfers.hpp"
#include "pipewright/plan/program/program_csv.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "pipewright/plan/schedules/schedule_request.hpp"
#include "planning.hpp"

namespace pipewright::cli {
namespace {

constexpr std::size_t most_warnings = 5;

std::string read_text(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream)
    text << stream.rdbuf();
  if (!stream || !text)
    throw plan::InputError(fmt::format("{}: cannot be read", file));
  return std::move(text).str();
}

bool has_communication(const std::string& text) {
  for (const char* word : {"SEND_", "RECV_", "REDUCE_GRAD", "SHARD"})
    if (text.find(word) != std::string::npos)
      return true;
  return false;
}

/// Deadlocks by layout and kind of transfer, in words; empty where there is none.
template <class Visit>
void for_each_layout(const plan::Program& program, const Visit& visit) {
  for (const std::string& layout : plan::communicator_layouts())
    for (const std::string& transfers : plan::transfer_modes())
      visit(layout, transfers,
            plan::find_deadlock(program, plan::parse_communicator_layout(layout),
                                plan::parse_transfer_mode(transfers)));
}

std::vector<std::string> warnings(const plan::Program& program) {
  std::vector<std::string> lines;
  for (const plan::CrossedTransfers& crossed : plan::crossed_transfers(program))
    lines.push_back(to_string(crossed));
  for (const plan::EarlyTransfer& early : plan::early_transfers(program))
    lines.push_back(to_string(early));
  return lines;
}

}  // namespace

CheckedSchedule check_schedule(const std::string& file, const plan::LoweringOptions& options) {
  const std::string text = read_text(file);
  const bool lowered = has_communication(text);
  CheckedSchedule checked;
  if (!lowered)
    checked.schedule = plan::parse_csv(text, file);
  try {
    if (lowered) {
      checked.program =
          plan::program_from_csv(text, file, options.communicators, options.transfers);
      checked.schedule = plan::schedule_of(checked.program);
    } else {
      checked.program = plan::lower(checked.schedule, options);
      plan::validate(checked.program);
    }
  } catch (const plan::MalformedFile&) {
    throw;
  } catch (const plan::InputError& error) {
    throw plan::Infeasible(fmt::format("{} is not sound:\n{}", file, error.what()));
  }
  return checked;
}

std::string check_report(const std::string& file, const CheckedSchedule& checked) {
  const plan::Schedule& schedule = checked.schedule;
  std::string text =
      fmt::format("{}: sound: {}\n", file,
                  plan::known_name(schedule).value_or(fmt::format(
                      "{} ranks, {} stages, {} microbatches, none of the schedules known by name",
                      schedule.ranks.size(), plan::stage_count(schedule), schedule.microbatches)));
  const plan::Placement& placement = checked.program.placement;
  if (placement.is_bidirectional())
    text += fmt::format("microbatches take {} routes: some stages live on several ranks\n",
                        placement.routes.size());
  for_each_layout(checked.program, [&](const std::string& layout, const std::string& transfers,
                                       const std::optional<std::string>& deadlock) {
    text += fmt::format("communicators {:<4}  {:<10}  {}\n", layout, transfers,
                        deadlock.value_or("no deadlock"));
  });
  const auto lines = warnings(checked.program);
  for (std::size_t i = 0; i < lines.size() && i < most_warnings; ++i)
    text += "warning: " + lines[i] + "\n";
  if (lines.size() > most_warnings)
    text += fmt::format("warning: {} more\n", lines.size() - most_warnings);
  return text;
}

plan::Json check_json(const CheckedSchedule& checked) {
  plan::Json deadlocks = plan::Json::object();
  for_each_layout(checked.program, [&](const std::string& layout, const std::string& transfers,
                                       const std::optional<std::string>& deadlock) {
    deadlocks[layout][transfers] = deadlock ? plan::Json(*deadlock) : plan::Json();
  });
  const auto name = plan::known_name(checked.schedule);
  return {{"name", name ? plan::Json(*name) : plan::Json()},
          {"deadlocks", std::move(deadlocks)},
          {"warnings", warnings(checked.program)}};
}

}  // namespace pipewright::cli
