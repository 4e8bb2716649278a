#include "pipewright/trace/explain/alternatives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/scenario/fastest_partition.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::trace {
namespace {

int most_activations(const plan::Schedule& schedule) {
  const auto peaks = plan::peak_activations(schedule);
  return peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
}

class Search {
 public:
  Search(const TracedPipeline& pipeline, const TracedCosts& traced,
         const std::function<void()>& ask)
      : pipeline_(pipeline), traced_(traced), ask_(ask) {}

  Alternatives run() {
    plan::Scenario scenario = traced_.scenario;
    scenario.pipeline.schedule = plan::ScheduleChoice(pipeline_.schedule, "traced");
    scenario.pipeline.chunks = 0;
    const auto now = sim::lay_out(scenario, traced_.costs);
    found_.now_s = iteration_of(now);
    found_.activations = most_activations(pipeline_.schedule);
    try_schedules(traced_.scenario, "");
    try_cut(now);
    try_microbatches();
    std::stable_sort(found_.all.begin(), found_.all.end(),
                     [](const auto& a, const auto& b) { return a.iteration_s < b.iteration_s; });
    return std::move(found_);
  }

 private:
  static double iteration_of(const sim::ScenarioPlan& plan) {
    return sim::Simulator(*plan.structure).iteration(plan.costs);
  }

  std::vector<TracedLayer> cut_of(const plan::Partition& partition) const {
    std::vector<TracedLayer> cut;
    if (plan::PartitionChoice(partition.boundaries) == traced_.scenario.pipeline.partition)
      return cut;
    for (std::size_t at = 1; at + 1 < partition.boundaries.size(); ++at)
      cut.push_back(traced_.layers[static_cast<std::size_t>(partition.boundaries[at])]);
    return cut;
  }

  /// Adds nothing if the schedule does not support these sizes, or would deadlock.
  void add(const std::string& change, const plan::Scenario& scenario) {
    ask_();
    try {
      const auto plan = sim::lay_out(scenario, traced_.costs);
      if (plan.program().placement.is_bidirectional())
        return;  // the traces do not show the cost of all-reducing the gradients of its replicas
      found_.all.push_back(
          {change, iteration_of(plan), most_activations(plan.schedule), cut_of(plan.partition)});
    } catch (const plan::InputError&) {
      return;
    } catch (const plan::Infeasible&) {
      return;
    }
  }

  /// Tries the other schedules. Those with another number of stages get a partition of their own,
  /// so they are skipped if the partition was changed.
  void try_schedules(const plan::Scenario& from, const std::string& change_of_cut) {
    const plan::Pipeline& now = from.pipeline;
    for (const plan::ScheduleDescriptor& entry : plan::schedules()) {
      if (!entry.trains_batch() || entry.is_instruction_stream)
        continue;
      for (const int chunks : plan::usual_chunks(entry.chunks)) {
        if ((entry.orders_by_times && now.ranks * chunks * now.microbatches > most_to_search) ||
            (entry.name == now.schedule && chunks == std::max(1, now.chunks)))
          continue;
        const bool same_stages = chunks == std::max(1, now.chunks);
        if (!change_of_cut.empty() && !same_stages)
          continue;
        plan::Scenario scenario = from;
        scenario.pipeline.schedule = entry.name;
        scenario.pipeline.chunks = chunks;
        std::string change = fmt::format("pipeline.schedule={}{}", entry.name, change_of_cut);
        if (!same_stages) {
          change += fmt::format(" pipeline.chunks={} pipeline.partition=profile", chunks);
          scenario.pipeline.partition = "profile";
        }
        add(change, scenario);
      }
    }
  }

  void try_cut(const sim::ScenarioPlan& now) {
    try {
      const auto best =
          sim::fastest_partition(now.program(), traced_.costs, traced_.scenario.cluster);
      if (best.partition.boundaries == now.partition.boundaries)
        return;
      std::string boundaries = plan::to_string(best.partition.boundaries);
      boundaries.erase(std::remove(boundaries.begin(), boundaries.end(), ' '), boundaries.end());
      const std::string change = "pipeline.partition=" + boundaries;
      found_.all.push_back(
          {change, best.iteration.value, found_.activations, cut_of(best.partition)});
      plan::Scenario scenario = traced_.scenario;
      scenario.pipeline.partition = best.partition.boundaries;
      try_schedules(scenario, " " + change);
    } catch (const plan::InputError&) {
      return;
    } catch (const plan::Infeasible&) {
      return;
    }
  }

  /// Tries the batch with twice and with half as many microbatches.
  void try_microbatches() {
    const int now = traced_.scenario.pipeline.microbatches;
    const auto add_count = [&](int count) {
      plan::Scenario scenario = traced_.scenario;
      const double length = static_cast<double>(now) / count;
      scenario.pipeline.microbatches = count;
      scenario.training.microbatch_lengths.assign(static_cast<std::size_t>(count), length);
      add(fmt::format("pipeline.microbatches={} training.microbatch_lengths=[{}]", count,
                      fmt::join(scenario.training.microbatch_lengths, ",")),
          scenario);
    };
    add_count(2 * now);
    if (now % 2 == 0)
      add_count(now / 2);
  }

  const TracedPipeline& pipeline_;
  const TracedCosts& traced_;
  const std::function<void()>& ask_;
  Alternatives found_;
};

}  // namespace

Alternatives alternatives(const TracedPipeline& pipeline, const TracedCosts& traced,
                          const std::function<void()>& ask) {
  return Search(pipeline, traced, ask).run();
}

}  // namespace pipewright::trace
