#pragma once

#include <string>

#include "pipewright/plan/json_document.hpp"
#include "pipewright/plan/lower.hpp"

namespace pipewright::cli {

struct LoweredSchedule {
  plan::Schedule schedule;
  plan::Program program;
};

/// Somebody's file: in torch's compute-only dialect it is lowered with `options`, in the dialect
/// with communication it is a Program already, which takes its communicators and transfers from
/// `options`. Throws MalformedFile, or Infeasible that says why its actions are not sound.
LoweredSchedule read_schedule(const std::string& file, const plan::LoweringOptions& options);

/// Proves that the Program of a file can run under these communicators and transfers. Throws
/// Infeasible that says why it cannot.
void require_sound(const std::string& file, const plan::Program& program,
                   plan::CommunicatorLayout communicators, plan::TransferMode transfers);

/// What the checks found, for people: the schedule's name, deadlocks under each communicator layout
/// and kind of transfer, early transfers.
std::string check_report(const std::string& file, const LoweredSchedule& checked);
/// The same for machines: "name", null when it is none that we know, "deadlocks" by layout and kind
/// of transfer, null where there is none, and "warnings".
plan::Json check_json(const LoweredSchedule& checked);

}  // namespace pipewright::cli
