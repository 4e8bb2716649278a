#pragma once

// A rank's sends and receives beside those that its schedule has: which is which, and where the two
// part for the first time.

#include <optional>
#include <vector>

#include "pipewright/plan/program/program.hpp"
#include "pipewright/trace/hang/diagnosis.hpp"
#include "pipewright/trace/hang/flight_record.hpp"

namespace pipewright::trace {

struct FlightDivergence {
  HangKind kind = HangKind::Order;
  plan::Instruction expected;  // what the schedule has there
  int operation = 0;           // what the rank issued there
  int step = -1;
  double progress = 0;  // in steps: which of two divergences comes first
};

struct FollowedSchedule {
  std::vector<std::optional<plan::Instruction>> instructions;  // by operation
  std::optional<FlightDivergence> divergence{};
  std::optional<plan::Instruction> next{};  // behind its last, where it did not diverge
  bool is_between_steps = false;            // … and that is the first of a step
  std::size_t followed = 0;                 // operations before it diverged
};

/// By record. Ranks of the job are those of the schedule, or, with several pipelines, those of
/// groups as large as it. Throws InputError where neither holds.
std::vector<FollowedSchedule> followed_schedule(const std::vector<FlightRecord>& records,
                                                const plan::Program& program);

}  // namespace pipewright::trace
