// Trains plans of a small model with `--verify`. Its sizes are multiples of nothing, so every cut
// is at an odd place.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <tuple>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/loop_torch/measured_costs.hpp"
#include "pipewright/loop_torch/verify.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "support/catch.hpp"
#include "support/combinations.hpp"

namespace pipewright::test {

inline plan::Scenario odd_scenario(int sequence = 7) {
  plan::Scenario scenario;
  scenario.name = "grid";
  scenario.model = plan::GptShape{
      .blocks = 3, .hidden = 20, .heads = 4, .sequence = sequence, .vocabulary = 251};
  scenario.data = {"text", PIPEWRIGHT_SOURCE_DIR "/scenarios/gpt-text/text.txt"};
  scenario.cluster.devices_per_node = 16;
  scenario.cluster.within_node.bandwidth_per_s = 1e12;
  scenario.training.steps = 2;
  scenario.training.microbatch_size = 1;
  scenario.profile = {.warm_up = 0, .least_repeats = 1, .most_repeats = 1};
  return scenario;
}

/// Returns costs that are measured once. They decide where the model is cut, so that the whole grid
/// cuts it in the same way.
inline const plan::LayerCosts& odd_costs(int sequence = 7) {
  const auto measure = [sequence] {
    const plan::Scenario scenario = odd_scenario(sequence);
    const std::atomic<bool> never{false};
    auto made = loop::measure_costs(scenario, loop::Workload(scenario), {}, never, {});
    for (plan::LayerCost& layer : made.layers) {
      layer.forward = layer.input_gradient = layer.weight_gradient = {1e-3};
      layer.splitting = {};
    }
    made.busy_cores = 1;
    return made;
  };
  static std::map<int, plan::LayerCosts> measured;
  const auto known = measured.find(sequence);
  return known != measured.end() ? known->second : measured[sequence] = measure();
}

/// Returns true if the schedule supports these sizes and trains as serial training does.
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

/// Returns the outcome of serial training. It depends on how the batch is summed and where layers
/// cut their tokens, but not on the plan.
inline const loop::SerialOutcome& serial_outcome(const plan::Scenario& scenario,
                                                 const loop::Workload& workload,
                                                 const std::vector<int>& groups) {
  using Key = std::tuple<std::vector<int>, int, bool, plan::Optimizer, double>;
  static std::map<Key, loop::SerialOutcome> known;
  const Key key(groups, workload.setup().tensor_groups, scenario.pipeline.sequence_parallel,
                scenario.training.optimizer, scenario.training.clip_norm);
  const auto found = known.find(key);
  if (found != known.end())
    return found->second;
  return known[key] = loop::train_serially(workload, groups, scenario.training.steps);
}

inline void check_verifies(const plan::Scenario& scenario) {
  const loop::Workload workload(scenario);
  const int sequence = scenario.model.as<plan::GptShape>().sequence;
  const loop::Plan plan = loop::make_plan(scenario, odd_costs(sequence));
  loop::Membership alone;
  const auto outcome = loop::train(scenario, plan, workload, alone, {.verified = true});
  const auto found = compare(outcome, serial_outcome(scenario, workload, outcome.gradient_groups));
  CHECK(to_string(found) ==
        fmt::format("verify: {0} of {0} losses and {1} of {1} parameter tensors ({2} numbers) are "
                    "bit-identical to training without a pipeline",
                    scenario.training.steps, found.tensors, found.parameters));
}

/// Chooses the smallest number of microbatches that the schedule supports. Returns false if there
/// is none, or if the schedule does not train as serial training does.
inline bool choose_microbatches(plan::Scenario& scenario) {
  for (const int microbatches : {2, scenario.pipeline.ranks, 2 * scenario.pipeline.ranks}) {
    scenario.pipeline.microbatches = microbatches;
    if (can_train(scenario))
      return true;
  }
  return false;
}

/// Returns true if a stage has several replicas; otherwise ZeRO has nothing to partition.
inline bool has_copies(const plan::Scenario& scenario) {
  return scenario.pipeline.replicas > 1 || sim::sound_program(scenario).placement.routes.size() > 1;
}

/// The settings of a training besides its sizes.
struct Trained {
  int zero = 0;
  plan::Optimizer optimizer = plan::Optimizer::AdamW;
  double clip = 0;
  int tensor = 1;
  bool cuts_tokens = false;
};

/// Trains and verifies a plan. Returns false if it cannot be trained: ZeRO stage 2 and 3 do not
/// support two directions.
inline bool check_plan(plan::Scenario scenario, const Trained& with) {
  scenario.training.zero = with.zero;
  scenario.training.optimizer = with.optimizer;
  scenario.training.clip_norm = with.clip;
  scenario.pipeline.tensor = with.tensor;
  scenario.pipeline.sequence_parallel = with.cuts_tokens;
  if (!can_train(scenario) || (with.zero > 0 && !has_copies(scenario)))
    return false;
  INFO(fmt::format("{}, {} ranks, {} replicas, zero {}, {}, clip {}, {} shards{}",
                   scenario.pipeline.schedule.name, scenario.pipeline.ranks,
                   scenario.pipeline.replicas, with.zero, plan::to_string(with.optimizer),
                   with.clip, with.tensor, with.cuts_tokens ? " with cut tokens" : ""));
  check_verifies(scenario);
  return true;
}

/// Trains with optimizers and clipping, with and without a partitioned optimizer, and with each
/// stage of ZeRO. With `cover`, only combinations whose pairs of values it still needs. Returns the
/// number of trained plans.
inline int check_plans(const std::string& schedule, int ranks, int replicas,
                       PairCover* cover = nullptr) {
  using enum plan::Optimizer;
  plan::Scenario scenario = odd_scenario();
  scenario.pipeline.schedule = schedule;
  scenario.pipeline.ranks = ranks;
  scenario.pipeline.replicas = replicas;
  if (!choose_microbatches(scenario))
    return 0;
  int checked = 0;
  for (const Trained& with : {Trained{0, AdamW, 0}, Trained{0, Sgd, 0.5}, Trained{1, AdamW, 0.5},
                              Trained{1, Sgd, 0}, Trained{2, Sgd, 0.5}, Trained{3, AdamW, 0.5}}) {
    const std::vector<std::string> values{
        schedule, std::to_string(ranks), std::to_string(replicas),
        fmt::format("{} {} {}", with.zero, plan::to_string(with.optimizer), with.clip)};
    if ((cover != nullptr && !cover->needs(values)) || !check_plan(scenario, with))
      continue;
    if (cover != nullptr)
      cover->add(values);
    ++checked;
  }
  return checked;
}

/// Trains plans with tensor parallelism. JitterCorrelation they cover every pair of settings; even
/// and odd numbers of ranks train one half each. All sizes have the same serial training. Returns
/// the number of trained plans.
inline int check_sharded_plans(const std::string& schedule, int ranks, int replicas) {
  using enum plan::Optimizer;
  plan::Scenario scenario = odd_scenario(/*sequence=*/8);  // in four equal parts
  scenario.pipeline.schedule = schedule;
  scenario.pipeline.ranks = ranks;
  scenario.pipeline.replicas = replicas;
  scenario.training.tensor_groups = 4;
  if (!choose_microbatches(scenario))
    return 0;
  const std::vector<Trained> all{{0, AdamW, 0.5, 2, false}, {0, AdamW, 0, 4, true},
                                 {1, AdamW, 0.5, 2, true},  {1, AdamW, 0, 4, false},
                                 {3, AdamW, 0.5, 2, true},  {2, AdamW, 0.5, 2, false}};
  int checked = 0;
  for (std::size_t at = static_cast<std::size_t>(ranks % 2); at < all.size(); at += 2)
    checked += check_plan(scenario, all[at]) ? 1 : 0;
  return checked;
}

}  // namespace pipewright::test
