#pragma once

// Compares a rank's sends and receives with those in its schedule: matches them and finds their
// first difference.

#include <optional>
#include <vector>

#include "pipewright/plan/program/program.hpp"
#include "pipewright/trace/hang/diagnosis.hpp"
#include "pipewright/trace/hang/flight_record.hpp"

namespace pipewright::trace {

struct FlightDivergence {
  HangKind kind = HangKind::Order;
  plan::Instruction expected;  // the schedule's instruction at this position
  int operation = 0;           // the operation that the rank issued at this position
  int step = -1;
  double progress = 0;  // in steps: orders two divergences in time
};

struct FollowedSchedule {
  std::vector<std::optional<plan::Instruction>> instructions;  // by operation
  std::optional<FlightDivergence> divergence{};
  std::optional<plan::Instruction> next{};  // after its last operation, if it did not diverge
  bool is_between_steps = false;            // `next` is the first instruction of a step
  std::size_t followed = 0;                 // number of operations before it diverged
};

/// Compares each record with the program. The job's ranks are those of the schedule or, with
/// several pipelines, the ranks of groups of the same size. Throws InputError if neither holds.
std::vector<FollowedSchedule> followed_schedule(const std::vector<FlightRecord>& records,
                                                const plan::Program& program);

}  // namespace pipewright::trace
