#pragma once

// Schedules and Programs that somebody wrote, and what can be proved of them.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/lower/lower.hpp"

namespace pipewright::trace {

struct LoweredSchedule {
  plan::Schedule schedule;
  plan::Program program;
  bool has_transfers = false;  // was read with them; else it was lowered here
};

/// Somebody's file: in torch's compute-only dialect it is lowered with `options`, in the dialect
/// with communication it is a Program already, which takes its communicators and transfers from
/// `options`. Throws MalformedFile, or Infeasible that says why its actions are not sound.
LoweredSchedule read_schedule(const std::string& file, const plan::LoweringOptions& options);

/// Proves that the Program of a file can run under these communicators and transfers. Throws
/// Infeasible that says why it cannot.
void require_sound(const std::string& file, const plan::Program& program,
                   plan::CommunicatorLayout communicators, plan::TransferMode transfers);

/// Whether a Program deadlocks under a layout of communicators and a kind of transfer.
struct LayoutDeadlock {
  std::string layout;
  std::string transfers;
  std::optional<std::string> cycle{};  // in words
};
std::vector<LayoutDeadlock> deadlocks_by_layout(const plan::Program& program);

/// What may slow the Program down: transfers that cross, or come early.
std::vector<std::string> warnings_of(const plan::Program& program);

/// "name", null when it is none that we know, "deadlocks" by layout and kind of transfer, null
/// where there is none, and "warnings".
plan::Json check_json(const LoweredSchedule& checked);

}  // namespace pipewright::trace
