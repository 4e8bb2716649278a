#include "pipewright/trace/files/schedule_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_file.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/crossed_transfers.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/program/early_transfers.hpp"
#include "pipewright/plan/program/validate_program.hpp"

namespace pipewright::trace {
namespace {

std::string read_text(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream)
    text << stream.rdbuf();
  if (!stream || !text)
    throw plan::InputError(fmt::format("{}: cannot be read", file));
  return std::move(text).str();
}

/// Runs a check that throws InputError for an unsound order, and throws Infeasible instead: the
/// file could be read, so the answer is "no".
template <class Run>
void sound(const std::string& file, const Run& run) {
  try {
    run();
  } catch (const plan::MalformedFile&) {
    throw;
  } catch (const plan::InputError& error) {
    throw plan::Infeasible(fmt::format("{} is not sound:\n{}", file, error.what()));
  }
}

}  // namespace

LoweredSchedule read_schedule(const std::string& file, const plan::LoweringOptions& options) {
  const std::string text = read_text(file);
  LoweredSchedule read;
  read.has_transfers = plan::has_communication(text);
  if (read.has_transfers) {
    sound(file, [&] {
      read.program = plan::program_from_csv(text, file, options.communicators, options.transfers);
    });
    read.schedule = plan::schedule_of(read.program);
  } else {
    read.schedule = plan::parse_csv(text, file);
    sound(file, [&] { read.program = plan::lower(read.schedule, options); });
  }
  return read;
}

void require_sound(const std::string& file, const plan::Program& program,
                   plan::CommunicatorLayout communicators, plan::TransferMode transfers) {
  sound(file, [&] { plan::validate(program, communicators, transfers); });
}

std::vector<LayoutDeadlock> deadlocks_by_layout(const plan::Program& program) {
  std::vector<LayoutDeadlock> all;
  for (const std::string& layout : plan::communicator_layouts())
    for (const std::string& transfers : plan::transfer_modes())
      all.push_back({layout, transfers,
                     plan::find_deadlock(program, plan::parse_communicator_layout(layout),
                                         plan::parse_transfer_mode(transfers))});
  return all;
}

std::vector<std::string> warnings_of(const plan::Program& program) {
  std::vector<std::string> lines;
  for (const plan::CrossedTransfers& crossed : plan::crossed_transfers(program))
    lines.push_back(to_string(crossed));
  for (const plan::EarlyTransfer& early : plan::early_transfers(program))
    lines.push_back(to_string(early));
  return lines;
}

plan::Json check_json(const LoweredSchedule& checked) {
  plan::Json deadlocks = plan::Json::object();
  for (const LayoutDeadlock& found : deadlocks_by_layout(checked.program))
    deadlocks[found.layout][found.transfers] =
        found.cycle ? plan::Json(*found.cycle) : plan::Json();
  const auto name = plan::known_name(checked.schedule);
  return {{"name", name ? plan::Json(*name) : plan::Json()},
          {"deadlocks", std::move(deadlocks)},
          {"warnings", warnings_of(checked.program)}};
}

}  // namespace pipewright::trace
