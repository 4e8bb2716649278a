#pragma once

// The simulator over many scenarios at once, on all cores.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::sim {

struct SweepRow {
  std::vector<std::string> values;  // of the fields that vary
  double iteration_s = 0;
  double bubble = 0;           // mean over ranks, as a fraction
  std::vector<double> idle_s;  // by cause, over all ranks
  Throughput throughput;
  plan::Bytes peak;        // of the rank that holds most
  std::string refusal;     // why this one cannot be, instead of all figures
  bool bad_input = false;  // the refusal says that what was asked makes no sense
};

/// Simulates a scenario. Errors become a refusal. Any thread may call it.
SweepRow sweep_row(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                   StructureCache& structures);

/// Fills a row for each number up to `count` on all cores; `done` is told how many there are so
/// far, from one thread at a time. Ends early, with rows left as they were, once `stop` is set.
std::vector<SweepRow> sweep(std::size_t count, const std::function<SweepRow(std::size_t)>& row,
                            const std::function<void(std::size_t)>& done,
                            const std::atomic<bool>& stop);

}  // namespace pipewright::sim
