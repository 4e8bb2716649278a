#include "pipewright/sim/scenario/sweep.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "engine/all_cores.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"
#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/memory/memory_cap.hpp"
#include "pipewright/sim/scenario/device_memory.hpp"

namespace pipewright::sim {
namespace {

void fill(SweepRow& row, const plan::Scenario& scenario, const plan::LayerCosts& costs,
          const ScenarioPlan& plan) {
  const Structure& structure = *plan.structure;
  require_usable(plan.costs, structure.program());
  Simulator simulator(structure);
  const Times& times = simulator.run_shared(plan.costs);
  row.iteration_s = times.iteration;
  row.throughput = throughput_of(scenario, plan, times.iteration);

  IdleCauses causes(structure);
  const IdleTime& idle = causes.of(times);
  row.idle_s.assign(plan::idle_cause_count, 0);
  for (const auto& rank : idle.by_cause)
    for (std::size_t cause = 0; cause < rank.size(); ++cause)
      row.idle_s[cause] += rank[cause];
  row.bubble = mean_bubble(idle, times.iteration);

  MemoryModel memory(structure, holding_of(scenario, structure.program()));
  const MemoryCurves& curves = memory.curves(plan.costs, times);
  const std::vector<plan::Bytes> needs = needs_of(scenario, costs, plan, curves.peaks);
  row.peak = *std::max_element(needs.begin(), needs.end());
  if (const auto over = over_cap(structure, memory, curves, plan.costs, times,
                                 plan::cluster_of_ranks(scenario), needs))
    throw plan::Infeasible(to_string(*over));
}

}  // namespace

SweepRow sweep_row(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                   StructureCache& structures) {
  SweepRow row;
  try {
    fill(row, scenario, costs, lay_out(scenario, costs, &structures));
  } catch (const plan::InputError& error) {
    row.refusal = error.what();
    row.bad_input = true;
  } catch (const plan::Infeasible& answer) {
    row.refusal = answer.what();
  }
  return row;
}

std::vector<SweepRow> sweep(std::size_t count, const std::function<SweepRow(std::size_t)>& row,
                            const std::function<void(std::size_t)>& done,
                            const std::atomic<bool>& stop) {
  std::vector<SweepRow> rows(count);
  std::mutex mutex;
  std::size_t finished = 0;
  on_all_cores(count, [&](const auto& next) {
    for (auto i = next(); i && !stop; i = next()) {
      rows[*i] = row(*i);
      const std::lock_guard lock(mutex);
      done(++finished);
    }
  });
  return rows;
}

}  // namespace pipewright::sim
