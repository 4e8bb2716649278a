#pragma once

// Descriptors for a user's Schedule, which exists only in the sizes it was written for.

#include <functional>

#include "pipewright/plan/generators/schedule_catalog.hpp"

namespace pipewright::plan {

ScheduleDescriptor custom_schedule(Schedule order, std::string name);

/// Checks that the schedule is sound and that every rank has at least one action.
void require_runnable(const Schedule& order);

/// Runs a check, and prefixes its error message with `name`.
void require_sound(const std::string& name, const std::function<void()>& prove);

}  // namespace pipewright::plan
