#pragma once

#include <string>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"

namespace pipewright::cli {

/// Somebody's file: in torch's compute-only dialect it is lowered with `options`, in the dialect
/// with communication it is a Program already, which takes its communicators and transfers from
/// `options`. Throws Infeasible that says why it is not sound.
struct CheckedSchedule {
  plan::Schedule schedule;
  plan::Program program;
};
CheckedSchedule check_schedule(const std::string& file, const plan::LoweringOptions& options);

/// What the checks found, for people: the schedule's name, deadlocks under each communicator layout
/// and kind of transfer, early transfers.
std::string check_report(const std::string& file, const CheckedSchedule& checked);
/// The same for machines: "name", null when it is none that we know, "deadlocks" by layout and kind
/// of transfer, null where there is none, and "warnings".
plan::Json check_json(const CheckedSchedule& checked);

}  // namespace pipewright::cli
