#pragma once

// From costs to a plan and its prediction.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipewright/plan/layer_costs.hpp"
#include "pipewright/plan/partition.hpp"
#include "pipewright/plan/scenario.hpp"
#include "pipewright/plan/schedule.hpp"
#include "pipewright/plan/stage_costs.hpp"
#include "pipewright/plan/timeline.hpp"
#include "pipewright/sim/step_costs.hpp"
#include "pipewright/sim/structure.hpp"

namespace pipewright::cli {

struct Plan {
  plan::Partition partition;
  plan::Schedule schedule;
  std::shared_ptr<const sim::Structure> structure;
  sim::StepCosts costs;
  plan::Timeline predicted;

  const plan::Program& program() const { return structure->program(); }
};

/// Structures that were built already, for plans that differ in their costs alone. Any thread may
/// use it.
class StructureCache {
 public:
  /// All that a Structure is made of.
  struct Key {
    plan::Pipeline pipeline;
    plan::Schedule schedule;
    std::vector<int> tied_stages;
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Nothing when it was not built yet.
  std::shared_ptr<const sim::Structure> find(const Key& key);
  void insert(Key key, std::shared_ptr<const sim::Structure> structure);

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const sim::Structure> structure;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// A model file, or a scenario that names one.
plan::Model read_model(const std::string& file);

/// What the items of each part weigh together.
std::vector<double> sums_of(const std::vector<double>& weights, const std::vector<int>& boundaries);

/// Boundaries of `parts` parts: the weights balanced, or for "uniform" the layers counted.
std::vector<int> boundaries_by(const std::string& method, const std::vector<double>& weights,
                               int parts);

/// Refuses, before anything is measured, sizes that the schedule does not take (InputError) and
/// communicators under which it deadlocks (Infeasible). Returns the Program that equal times give.
plan::Program sound_program(const plan::Scenario& scenario);

/// Partition, schedule, Program and what each stage costs; nothing is predicted yet. The schedule
/// is `file`'s when one is given (CSV), else the scenario's. Throws InputError for costs that are
/// not the scenario's or that nothing can be predicted from, and for a file that is not sound;
/// Infeasible with the cycle of a deadlock.
Plan lay_out(const plan::Scenario& scenario, const plan::LayerCosts& costs,
             const std::string& file = "", StructureCache* cache = nullptr);

/// Refuses a rank that holds more than its device has, and names the quickest single change of the
/// scenario that fits. Throws plan::Infeasible.
void check_memory(const plan::Scenario& scenario, const plan::LayerCosts& costs, const Plan& plan);

/// What to say when ranks are more than cores; else nothing.
std::string core_warning(const plan::Scenario& scenario);

/// The plan in a few lines: stages with their layers, the schedule's head.
std::string plan_table(const Plan& plan, const plan::LayerCosts& costs);

}  // namespace pipewright::cli
