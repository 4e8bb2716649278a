#pragma once

// The choice of a schedule: one of the catalog by its name, or a custom one, which is a
// generator, a Schedule, a Program, or a file with a Schedule or Program.

#include <memory>
#include <string>

#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

struct ScheduleDescriptor;

struct ScheduleChoice {
  std::string name;  // name in the catalog, name of a custom schedule, or path of its file
  /// The schedule with that name, if it is not in the catalog.
  std::shared_ptr<const ScheduleDescriptor> own{};

  ScheduleChoice();  // `default_schedule`
  ScheduleChoice(std::string of_catalog) : name(std::move(of_catalog)) {}
  ScheduleChoice(const char* of_catalog) : name(of_catalog) {}
  /// A custom generator. `make`, `name` and `chunks` are required. Its schedules are used
  /// unchanged, and validated whenever they are lowered. Throws InputError for a name that the
  /// catalog has, or that looks like a file's.
  ScheduleChoice(ScheduleDescriptor generator);
  /// A custom order of actions, used unchanged. Throws InputError that names rank and action if it
  /// is not valid.
  ScheduleChoice(Schedule order, std::string called = "own");
  /// A custom Program, run unchanged. Throws InputError if it cannot run under any communicators.
  ScheduleChoice(Program program, std::string called = "own");

  /// Returns the name for display: the schedule's name, or its file's name without folders.
  std::string label() const;
  /// Custom schedules are equal if they are the same object or were read from the same text.
  friend bool operator==(const ScheduleChoice& a, const ScheduleChoice& b);
};

}  // namespace pipewright::plan
