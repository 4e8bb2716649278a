#pragma once

// Converts a Scenario and the costs of its layers to the inputs of an engine: partition, schedule,
// Program and the costs of each stage.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::sim {

struct ScenarioPlan {
  plan::Partition partition;
  plan::Schedule schedule;
  std::shared_ptr<const Structure> structure;
  StepCosts costs;

  const plan::Program& program() const { return structure->program(); }
};

/// A cache of Structures, for plans that differ only in their costs. Thread-safe.
class StructureCache {
 public:
  /// All inputs of a Structure.
  struct Key {
    plan::Schedule schedule;
    plan::LoweringOptions lowering;
    /// Set if the schedule itself decides which Program it becomes.
    std::shared_ptr<const plan::ScheduleDescriptor> own{};
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Returns null if it was not built yet.
  std::shared_ptr<const Structure> find(const Key& key);
  /// Inserts a Structure, and removes the oldest if there are many: large ones take 200 MB.
  void insert(Key key, std::shared_ptr<const Structure> structure);

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const Structure> structure;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// Returns the options that decide how much memory the scenario's ranks hold. Each stage has
/// replicas × routes copies.
Holding holding_of(const plan::Scenario& scenario, const plan::Program& program);

/// Returns how the scenario's Program communicates, reduces and steps.
plan::LoweringOptions lowering_of(const plan::Scenario& scenario);

/// Returns the Program for equal layer times. Rejects, before anything is measured, sizes that the
/// schedule does not support (InputError) and communicators under which it deadlocks (Infeasible).
plan::Program sound_program(const plan::Scenario& scenario);

/// Returns the scenario's plan. Throws InputError for costs that do not match the scenario or do
/// not suffice for a prediction, and for devices too small for their standing memory; throws
/// Infeasible with the cycle of a deadlock. `cache` may be null.
ScenarioPlan lay_out(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                     StructureCache* cache = nullptr);

/// Rejects a rank that needs more memory than its device has, and names the fastest single change
/// of the scenario that fits. `trained`: only changes with which training can run today. Throws
/// plan::Infeasible.
void require_memory(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                    const ScenarioPlan& plan, bool trained = false);

/// Returns the scenario with the plan's stage boundaries set explicitly.
plan::Scenario placed(plan::Scenario scenario, const ScenarioPlan& plan);

/// The throughput of an iteration.
struct Throughput {
  double units_per_s = 0;  // over all replicas
  std::string unit;        // "tokens", "images"
  /// Model FLOPs over the devices' peak, counting a backward as two forwards and no recomputation
  /// (Chowdhery et al., PaLM, arXiv 2204.02311, appendix B). 0: the peak is not known.
  double mfu = 0;
};
/// Returns the throughput. A microbatch of length 2 has twice the tokens.
Throughput throughput_of(const plan::Scenario& scenario, const ScenarioPlan& plan,
                         double iteration_s);

}  // namespace pipewright::sim
