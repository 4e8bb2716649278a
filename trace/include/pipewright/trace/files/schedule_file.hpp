#pragma once

// Reads schedules and Programs from files, and proves their properties.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/lower/lower.hpp"

namespace pipewright::trace {

struct LoweredSchedule {
  plan::Schedule schedule;
  plan::Program program;
  bool has_transfers = false;  // the file had transfers; otherwise it was lowered here
};

/// Reads a schedule file. In torch's compute-only dialect it is lowered with `options`; in the
/// dialect with communication it is already a Program, which takes its communicators and transfer
/// mode from `options`. Throws MalformedFile, or Infeasible that says why its actions are not
/// sound.
LoweredSchedule read_schedule(const std::string& file, const plan::LoweringOptions& options);

/// Proves that the Program of a file can run with these communicators and transfers. Throws
/// Infeasible that says why it cannot.
void require_sound(const std::string& file, const plan::Program& program,
                   plan::CommunicatorLayout communicators, plan::TransferMode transfers);

/// Result of a deadlock check of a Program for one communicator layout and transfer mode.
struct LayoutDeadlock {
  std::string layout;
  std::string transfers;
  std::optional<std::string> cycle{};  // as text
};
std::vector<LayoutDeadlock> deadlocks_by_layout(const plan::Program& program);

/// Returns the transfers that may slow the Program down: those that cross, and those that come
/// early.
std::vector<std::string> warnings_of(const plan::Program& program);

/// Returns an object with "name" (null if the schedule is not in the catalog), "deadlocks" by
/// layout and transfer mode (null if there is none), and "warnings".
plan::Json check_json(const LoweredSchedule& checked);

}  // namespace pipewright::trace
