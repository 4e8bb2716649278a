#include "pipewright/plan/generators/schedule_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "custom_program.hpp"
#include "custom_schedule.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/generators/schedule_file.hpp"
#include "pipewright/plan/program/computation.hpp"

namespace pipewright::plan {

ScheduleChoice::ScheduleChoice() : name(default_schedule().name) {}

ScheduleChoice::ScheduleChoice(ScheduleDescriptor generator) : name(generator.name) {
  const auto& known = schedule_names();
  if (name.empty() || names_schedule_file(name) ||
      std::find(known.begin(), known.end(), name) != known.end())
    throw InputError(
        fmt::format("\"{}\" cannot be the name of a custom schedule: it must have no dots and "
                    "slashes, and must not be in the catalog",
                    name));
  own = std::make_shared<const ScheduleDescriptor>(std::move(generator));
}

ScheduleChoice::ScheduleChoice(Schedule order, std::string called) : name(std::move(called)) {
  require_sound(name, [&] { require_runnable(order); });
  own = std::make_shared<const ScheduleDescriptor>(custom_schedule(std::move(order), name));
}

ScheduleChoice::ScheduleChoice(Program program, std::string called) : name(std::move(called)) {
  require_sound(name, [&] { require_runnable(program); });
  own = std::make_shared<const ScheduleDescriptor>(custom_program(std::move(program), name));
}

std::string ScheduleChoice::label() const {
  return own && names_schedule_file(name) ? std::filesystem::path(name).filename().string() : name;
}

bool operator==(const ScheduleChoice& a, const ScheduleChoice& b) {
  if (a.name != b.name || a.own == b.own)
    return a.name == b.name;
  return a.own && b.own && !a.own->text.empty() && a.own->text == b.own->text;
}

}  // namespace pipewright::plan
