#pragma once

// From a Scenario and the costs of its layers to what an engine needs: partition, schedule, Program
// and the costs of each stage.

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

/// Structures that were built already, for plans that differ in their costs alone. Any thread may
/// use it.
class StructureCache {
 public:
  /// All that a Structure is made of.
  struct Key {
    plan::Schedule schedule;
    plan::LoweringOptions lowering;
    /// Where a schedule says by itself which Program it becomes.
    std::shared_ptr<const plan::ScheduleDescriptor> own{};
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Nothing when it was not built yet.
  std::shared_ptr<const Structure> find(const Key& key);
  /// Forgets the oldest when there are many: large ones take 200 MB.
  void insert(Key key, std::shared_ptr<const Structure> structure);

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const Structure> structure;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// What decides how much the scenario's ranks hold; each stage has as many copies as replicas and
/// routes.
Holding holding_of(const plan::Scenario& scenario, const plan::Program& program);

/// How the scenario's Program communicates, reduces and steps.
plan::LoweringOptions lowering_of(const plan::Scenario& scenario);

/// The Program that equal times give. Refuses, before anything is measured, sizes that the schedule
/// does not take (InputError) and communicators under which it deadlocks (Infeasible).
plan::Program sound_program(const plan::Scenario& scenario);

/// The scenario's plan. Throws InputError for costs that are not the scenario's or that nothing can
/// be predicted from, and for devices too small for what stands on them; Infeasible with the cycle
/// of a deadlock. `cache` may be null.
ScenarioPlan lay_out(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                     StructureCache* cache = nullptr);

/// Refuses a rank that holds more than its device has, and names the quickest single change of the
/// scenario that fits; `trained`: one that training can do today. Throws plan::Infeasible.
void require_memory(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                    const ScenarioPlan& plan, bool trained = false);

/// The scenario with the borders of its stages named, as the plan has them.
plan::Scenario placed(plan::Scenario scenario, const ScenarioPlan& plan);

/// What an iteration works off.
struct Throughput {
  double units_per_s = 0;  // over all replicas
  std::string unit;        // "tokens", "images"
  /// Model FLOPs over the devices' peak, a backward counted as two forwards and no recomputation
  /// (Chowdhery et al., PaLM, arXiv 2204.02311, appendix B). 0: the peak is not known.
  double mfu = 0;
};
/// A microbatch of length 2 has twice the tokens.
Throughput throughput_of(const plan::Scenario& scenario, const ScenarioPlan& plan,
                         double iteration_s);

}  // namespace pipewright::sim
