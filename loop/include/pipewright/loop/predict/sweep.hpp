#pragma once

// Sweeps: simulates a scenario with several values for some of its fields.

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "pipewright/draw/chart.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/scenario/ranges.hpp"
#include "pipewright/sim/scenario/sweep.hpp"

namespace pipewright::loop {

/// The combinations that were simulated and their results.
struct Sweep {
  std::string scenario;                 // name of the scenario
  std::vector<sim::SweptField> varied;  // the fields with several values
  std::vector<sim::SweepRow> rows;
};

/// The scenario's document and its assignments, each with one or more values.
struct SweptScenario {
  plan::JsonDocument base;
  std::vector<sim::SweptField> fields;
};

/// Returns the fields that have several values.
std::vector<sim::SweptField> varied_fields(const std::vector<sim::SweptField>& fields);

/// Returns the scenario of the first combination.
plan::Scenario first_scenario(const SweptScenario& swept);

/// Simulates all combinations on all cores. A combination that cannot be simulated becomes a row
/// that gives the reason. Throws Stopped.
Sweep run_sweep(const SweptScenario& swept, const plan::LayerCosts& costs,
                const std::function<void(std::size_t done, std::size_t of)>& progress,
                const std::atomic<bool>& stop);

/// Returns the row with the highest throughput, or null if there is none. Only throughput, and not
/// the iteration time, can compare batches of different sizes.
const sim::SweepRow* best_of(const std::vector<sim::SweepRow>& rows);

std::string to_csv(const Sweep& sweep);
plan::Json to_json(const Sweep& sweep);

/// Plots throughput over the field with the most values, with one line for each combination of the
/// others.
draw::Chart chart_of(const Sweep& sweep);

}  // namespace pipewright::loop
