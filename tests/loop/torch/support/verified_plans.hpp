// Plans of a small model, sent through `--verify`. Sizes are multiples of nothing, so that whatever
// is cut is cut at odd places.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <tuple>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop/plan.hpp"
#include "pipewright/loop_torch/measured_costs.hpp"
#include "pipewright/loop_torch/verify.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "support/catch.hpp"

namespace pipewright::test {

inline plan::Scenario odd_scenario() {
  plan::Scenario scenario;
  scenario.name = "grid";
  scenario.model =
      plan::GptShape{.blocks = 3, .hidden = 20, .heads = 4, .sequence = 7, .vocabulary = 251};
  scenario.data = {"text", PIPEWRIGHT_SOURCE_DIR "/scenarios/gpt-text/text.txt"};
  scenario.cluster.devices_per_node = 16;
  scenario.cluster.within_node.bandwidth_per_s = 1e12;
  scenario.training.steps = 2;
  scenario.training.microbatch_size = 1;
  scenario.profile = {.warm_up = 0, .least_repeats = 1, .most_repeats = 1};
  return scenario;
}

/// Measured once: they decide where the model is cut, and all of the grid shall cut it alike.
inline const plan::LayerCosts& odd_costs() {
  static const plan::LayerCosts measured = [] {
    const plan::Scenario scenario = odd_scenario();
    const std::atomic<bool> never{false};
    auto made = loop::measure_costs(scenario, loop::Workload(scenario), {}, never, {});
    for (plan::LayerCost& layer : made.layers) {
      layer.forward = layer.input_gradient = layer.weight_gradient = {1e-3};
      layer.splitting = {};
    }
    made.busy_cores = 1;
    return made;
  }();
  return measured;
}

/// Whether the schedule takes these sizes, and trains as a serial one does.
inline bool can_train(const plan::Scenario& scenario) {
  try {
    const auto request = plan::request_of(scenario.pipeline);
    if (plan::stage_count(request) > static_cast<int>(model_of(scenario).layers.size()))
      return false;
    const plan::Program program = sim::sound_program(scenario);
    exec::require_trainable(program);
    return loop::can_verify(program);
  } catch (const plan::InputError&) {
    return false;
  }
}

/// The serial training does not depend on the plan, but on how the batch is added up.
inline const loop::SerialOutcome& serial_outcome(const plan::Scenario& scenario,
                                                 const loop::Workload& workload,
                                                 const std::vector<int>& groups) {
  using Key = std::tuple<std::vector<int>, int, plan::Optimizer, double>;
  static std::map<Key, loop::SerialOutcome> known;
  const Key key(groups, workload.setup().tensor_groups, scenario.training.optimizer,
                scenario.training.clip_norm);
  const auto found = known.find(key);
  if (found != known.end())
    return found->second;
  return known[key] = loop::train_serially(workload, groups, scenario.training.steps);
}

inline void check_verifies(const plan::Scenario& scenario) {
  const loop::Workload workload(scenario);
  const loop::Plan plan = loop::make_plan(scenario, odd_costs());
  loop::Membership alone;
  const auto outcome = loop::train(scenario, plan, workload, alone, {.verified = true});
  const auto found = compare(outcome, serial_outcome(scenario, workload, outcome.gradient_groups));
  CHECK(to_string(found) ==
        fmt::format("verify: {0} of {0} losses and {1} of {1} parameter tensors ({2} numbers) are "
                    "bit-identical to training without a pipeline",
                    scenario.training.steps, found.tensors, found.parameters));
}

/// As few microbatches as the schedule takes. Whether there is such a number, and the schedule
/// trains as a serial training does.
inline bool choose_microbatches(plan::Scenario& scenario) {
  for (const int microbatches : {2, scenario.pipeline.ranks, 2 * scenario.pipeline.ranks}) {
    scenario.pipeline.microbatches = microbatches;
    if (can_train(scenario))
      return true;
  }
  return false;
}

/// Without several copies of a stage there is nothing to shard.
inline bool has_copies(const plan::Scenario& scenario) {
  return scenario.pipeline.replicas > 1 || sim::sound_program(scenario).placement.routes.size() > 1;
}

/// With each stage of ZeRO; to stage 1, where a step sees all gradients at once, with two kinds of
/// optimizers, with and without clipping. Returns how many were trained.
inline int check_plans(const std::string& schedule, int ranks, int replicas) {
  plan::Scenario scenario = odd_scenario();
  scenario.pipeline.schedule = schedule;
  scenario.pipeline.ranks = ranks;
  scenario.pipeline.replicas = replicas;
  if (!choose_microbatches(scenario))
    return 0;
  int checked = 0;
  for (const int zero : has_copies(scenario) ? std::vector{0, 1, 2, 3} : std::vector{0})
    for (const auto optimizer : {plan::Optimizer::AdamW, plan::Optimizer::Sgd})
      for (const double clip : {0.0, 0.5}) {
        scenario.training.zero = zero;
        scenario.training.optimizer = optimizer;
        scenario.training.clip_norm = clip;
        const bool is_usual = optimizer == plan::Optimizer::AdamW && clip == 0;
        if (zero > 1 && (!is_usual || !can_train(scenario)))
          continue;  // in two directions
        INFO(fmt::format("{}, {} ranks, {} replicas, zero {}, {}, clip {}", schedule, ranks,
                         replicas, zero, plan::to_string(optimizer), clip));
        check_verifies(scenario);
        ++checked;
      }
  return checked;
}

/// With clipping, whole and sharded optimizers; all numbers of shards have the same serial
/// training. Returns how many were trained.
inline int check_sharded_plans(const std::string& schedule, int ranks, int replicas, int tensor) {
  plan::Scenario scenario = odd_scenario();
  scenario.pipeline.schedule = schedule;
  scenario.pipeline.ranks = ranks;
  scenario.pipeline.replicas = replicas;
  scenario.pipeline.tensor = tensor;
  scenario.training.tensor_groups = 4;
  scenario.training.clip_norm = 0.5;
  if (!choose_microbatches(scenario))
    return 0;
  int checked = 0;
  for (const int zero : has_copies(scenario) ? std::vector{0, 1} : std::vector{0}) {
    scenario.training.zero = zero;
    INFO(fmt::format("{}, {} ranks, {} replicas, {} shards, zero {}", schedule, ranks, replicas,
                     tensor, zero));
    check_verifies(scenario);
    ++checked;
  }
  return checked;
}

}  // namespace pipewright::test
