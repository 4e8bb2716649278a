#include "pipewright/loop/schedule_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/crossed_transfers.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/program/early_transfers.hpp"
#include "pipewright/plan/program/program_csv.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "pipewright/plan/schedules/schedule_request.hpp"
#include "pipewright/sim/scenario_plan.hpp"

namespace pipewright::loop {
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

bool has_communication(const std::string& text) {
  for (const char* word : {"SEND_", "RECV_", "REDUCE_GRAD", "SHARD"})
    if (text.find(word) != std::string::npos)
      return true;
  return false;
}

/// A Program as it was written, such as by `run`. It is read, and proved, under the communicators
/// that deadlock least: that its own do is an answer, which the simulator gives, not bad input.
plan::Program program_from_json(const std::string& file) {
  auto document = plan::JsonDocument::read(file);
  const auto replaced = [&](const std::string& key, const std::string& word) {
    const plan::Json& root = document.root();
    if (!root.is_object() || !root.contains(key) || !root[key].is_string())
      return std::string();  // reading says what is wrong
    std::string written = root[key];
    document.set(key + "=" + word);
    return written;
  };
  const std::string communicators = replaced("communicators", "edge");
  const std::string transfers = replaced("transfers", "eager");
  plan::Program program = plan::program_from_json(document);
  program.communicators = plan::parse_communicator_layout(communicators);
  program.transfers = plan::parse_transfer_mode(transfers);
  return program;
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

plan::Program program_from(const std::string& file, const plan::Scenario& scenario) {
  if (file.ends_with(".json"))
    return program_from_json(file);
  plan::LoweringOptions options = sim::lowering_of(scenario);
  options.communicators = plan::CommunicatorLayout::Edge;
  options.transfers = plan::TransferMode::Eager;
  try {
    plan::Program program = check_schedule(file, options).program;
    program.communicators = scenario.pipeline.communicators;
    program.transfers = scenario.pipeline.transfers;
    return program;
  } catch (const plan::Infeasible& unsound) {
    throw plan::InputError(unsound.what());
  }
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

plan::Json check_json(const CheckedSchedule& checked) {
  plan::Json deadlocks = plan::Json::object();
  for (const LayoutDeadlock& found : deadlocks_by_layout(checked.program))
    deadlocks[found.layout][found.transfers] =
        found.cycle ? plan::Json(*found.cycle) : plan::Json();
  const auto name = plan::known_name(checked.schedule);
  return {{"name", name ? plan::Json(*name) : plan::Json()},
          {"deadlocks", std::move(deadlocks)},
          {"warnings", warnings_of(checked.program)}};
}

}  // namespace pipewright::loop
