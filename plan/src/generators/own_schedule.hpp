#pragma once

// What a Schedule that somebody wrote declares of itself: its sizes are the only ones that it has.

#include <functional>

#include "pipewright/plan/generators/schedule_catalogue.hpp"

namespace pipewright::plan {

ScheduleDescriptor own_schedule(Schedule order, std::string name);

/// Proves that it is sound, and that every rank has something to do.
void require_runnable(const Schedule& order);

/// Runs a proof, whose refusal then says of what it is.
void require_sound(const std::string& name, const std::function<void()>& prove);

}  // namespace pipewright::plan
