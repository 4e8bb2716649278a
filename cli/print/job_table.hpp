#pragma once

// Prints a job in which every device is simulated individually, as text and as JSON.

#include <string>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/engine/job_simulator.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::cli {

std::string job_table(const sim::ScenarioPlan& plan, const sim::JobTimes& times);
plan::Json job_json(const sim::ScenarioPlan& plan, const sim::JobTimes& times);

}  // namespace pipewright::cli
