#pragma once

// Simulates many scenarios on all cores.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::sim {

struct SweepRow {
  std::vector<std::string> values;  // of the varied fields
  double iteration_s = 0;
  double bubble = 0;           // mean over ranks, as a fraction
  std::vector<double> idle_s;  // by cause, over all ranks
  Throughput throughput;
  plan::Bytes peak;        // of the rank that holds most
  std::string refusal;     // why this row has no figures
  bool bad_input = false;  // true if the refusal is due to invalid input
};

/// Simulates a scenario. Errors become a refusal. Thread-safe.
SweepRow sweep_row(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                   StructureCache& structures);

/// Fills a row for each number below `count` on all cores. `done` receives the number of finished
/// rows, from one thread at a time. Ends early, leaving the remaining rows empty, once `stop` is
/// set.
std::vector<SweepRow> sweep(std::size_t count, const std::function<SweepRow(std::size_t)>& row,
                            const std::function<void(std::size_t)>& done,
                            const std::atomic<bool>& stop);

}  // namespace pipewright::sim
