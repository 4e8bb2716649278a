#include "pipewright/loop/schedule_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/crossed_transfers.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/program/early_transfers.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

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

/// Runs what throws InputError at an unsound order; the file could be read, so the answer is no.
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

// What has no sound order is bad input. That it deadlocks under its own communicators is an answer,
// which the simulator gives, so soundness is proved under those that deadlock least.
constexpr auto least_queues = plan::CommunicatorLayout::Edge;
constexpr auto least_waiting = plan::TransferMode::Eager;

bool has_recompute(const plan::Program& program) {
  for (const auto& rank : program.ranks)
    for (const plan::Instruction& i : rank)
      if (i.kind == plan::InstructionKind::Recompute)
        return true;
  return false;
}

/// Costs and memory are those of the scenario's `training.recompute`, so what runs must compute
/// again what that says. Empty: it does; what is left out under `full` anybody may add.
std::string missing_recompute(const plan::Program& program, plan::RecomputeMode wanted) {
  if (wanted != plan::RecomputeMode::Full || plan::is_forward_only(program) ||
      has_recompute(program))
    return "";
  return "computes nothing again, but training.recompute is full: it needs an R before each "
         "backward (possible without: training.recompute none, selective)";
}

/// A Program of a .json says as well how it computes again.
void check_recompute(const plan::Program& program, plan::RecomputeMode wanted,
                     plan::Diagnostics& diagnostics) {
  const std::string mode = plan::to_string(wanted);
  if (const std::string missing = missing_recompute(program, wanted); !missing.empty())
    diagnostics.add("/ranks", missing);
  const int layers =
      wanted == plan::RecomputeMode::Full ? plan::LoweringOptions().recompute_layers : 0;
  if (has_recompute(program) && program.recompute_layers != layers)
    diagnostics.add(
        "/recompute_layers",
        fmt::format(
            "is {} and there is an R, but training.recompute is {}, which needs {} "
            "(1: training.recompute full; 0, an R runs its stage again at once: none, selective)",
            program.recompute_layers, mode, layers));
  const bool selective = wanted == plan::RecomputeMode::Selective;
  if (program.selective_recompute != selective)
    diagnostics.add("/selective_recompute",
                    fmt::format("is {}, but training.recompute is {}, which needs {}",
                                program.selective_recompute, mode, selective));
}

/// A Program as it was written, such as by `run`.
plan::Program program_from_json(const std::string& file, const plan::Scenario& scenario) {
  const auto document = plan::JsonDocument::read(file);
  plan::Program program = plan::program_from_json(document);
  plan::Diagnostics diagnostics(document);
  try {
    plan::validate(program, least_queues, least_waiting);
  } catch (const plan::InputError& unsound) {
    diagnostics.add_lines("/ranks", unsound.what());
  }
  check_recompute(program, scenario.training.recompute, diagnostics);
  diagnostics.throw_if_any();
  return program;
}

}  // namespace

LoweredSchedule read_schedule(const std::string& file, const plan::LoweringOptions& options) {
  const std::string text = read_text(file);
  LoweredSchedule read;
  read.has_transfers = has_communication(text);
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

plan::Program program_from(const std::string& file, const plan::Scenario& scenario) {
  if (file.ends_with(".json"))
    return program_from_json(file, scenario);
  try {
    plan::Program program = read_schedule(file, sim::lowering_of(scenario)).program;
    require_sound(file, program, least_queues, least_waiting);
    if (const std::string missing = missing_recompute(program, scenario.training.recompute);
        !missing.empty())
      throw plan::InputError(fmt::format("{}: {}", file, missing));
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

}  // namespace pipewright::loop
