#pragma once

// One scenario with several values for some of its fields.

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

/// The combinations to simulate and what came of them.
struct Sweep {
  std::string scenario;                 // its name
  std::vector<sim::SweptField> varied;  // the fields with several values
  std::vector<sim::SweepRow> rows;
};

/// The scenario's document and its assignments, each of one value or several.
struct SweptScenario {
  plan::JsonDocument base;
  std::vector<sim::SweptField> fields;
};

/// The keys that have several values.
std::vector<sim::SweptField> varied_fields(const std::vector<sim::SweptField>& fields);

/// The first combination.
plan::Scenario first_scenario(const SweptScenario& swept);

/// Simulates all combinations, on all cores; what cannot be is a row that says why. Throws Stopped.
Sweep run_sweep(const SweptScenario& swept, const plan::LayerCosts& costs,
                const std::function<void(std::size_t done, std::size_t of)>& progress,
                const std::atomic<bool>& stop);

/// The quickest by time a unit of work, which alone compares batches of unequal size.
const sim::SweepRow* best_of(const std::vector<sim::SweepRow>& rows);

std::string to_csv(const Sweep& sweep);
plan::Json to_json(const Sweep& sweep);

/// Throughput over the field with the most values; one line for each combination of the others.
draw::Chart chart_of(const Sweep& sweep);

}  // namespace pipewright::loop
