#pragma once

// Which schedule is run: one of the catalogue by its name, or one's own, which is a generator, a
// Schedule, a Program, or a file that has one of them.

#include <memory>
#include <string>

#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

struct ScheduleDescriptor;

struct ScheduleChoice {
  std::string name;  // of the catalogue, of one's own, or where its file lies
  /// What the name stands for where the catalogue does not have it.
  std::shared_ptr<const ScheduleDescriptor> own{};

  ScheduleChoice();  // `default_schedule`
  ScheduleChoice(std::string of_catalogue) : name(std::move(of_catalogue)) {}
  ScheduleChoice(const char* of_catalogue) : name(of_catalogue) {}
  /// A generator of one's own. `make`, `name` and `chunks` are needed; what it makes is taken as it
  /// is, and proved whenever it is lowered. Throws InputError for a name that the catalogue has, or
  /// that looks like a file's.
  ScheduleChoice(ScheduleDescriptor generator);
  /// An order of one's own, taken as it is. Throws InputError that names rank and action where it
  /// is not sound.
  ScheduleChoice(Schedule order, std::string called = "own");
  /// A Program of one's own, run as it is. Throws InputError where it cannot run under any
  /// communicators.
  ScheduleChoice(Program program, std::string called = "own");

  /// What people read: a name, or the name of its file without folders.
  std::string label() const;
  /// Of one's own, two are the same when they are one, or read from the same text.
  friend bool operator==(const ScheduleChoice& a, const ScheduleChoice& b);
};

}  // namespace pipewright::plan
