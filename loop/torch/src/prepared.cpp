#include "pipewright/loop_torch/prepared.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/exec/checkpoint/crc32c.hpp"
#include "pipewright/loop_torch/verify.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::loop {
namespace {

std::string checksum(const std::string& text) {
  return fmt::format("{:08x}", exec::crc32c(text.data(), text.size()));
}

void say(const PrepareOptions& options, const std::string& text) {
  if (options.say)
    options.say(text);
}

plan::LayerCosts measured_here(const plan::Scenario& scenario, const Workload& workload,
                               const PrepareOptions& options) {
  static const std::atomic<bool> never = false;
  say(options,
      fmt::format("profiling {} layers on this machine's {} …", workload.setup().layers.size(),
                  workload.device().device.is_cpu() ? "CPU" : "GPU"));
  const MeasuredLayers measured =
      measure_layers(scenario, workload, options.stop == nullptr ? never : *options.stop,
                     {.progress = options.profiling,
                      .cache = options.cache,
                      .fresh = options.fresh,
                      .say = options.say});
  if (const std::string words = in_words(measured); !words.empty())
    say(options, words.substr(0, words.size() - 1));
  if (!measured.why_host_clock.empty())
    say(options, host_clock_message(measured));
  double worst = 0;
  for (const plan::LayerCost& layer : measured.costs.layers)
    worst = std::max(worst, layer.spread);
  say(options, fmt::format("measured on {}; the largest spread of a layer is {:.1f} %",
                           measured.costs.device, 100 * worst));
  return measured.costs;
}

/// Measures on one process for all.
plan::LayerCosts measured_costs(const plan::Scenario& scenario, const Workload& workload,
                                const Membership& members, const PrepareOptions& options) {
  if (!members.in_job())
    return measured_here(scenario, workload, options);
  std::string measured;
  if (members.is_first())
    measured = to_json(measured_here(scenario, workload, options)).dump();
  return plan::layer_costs_from_json(
      plan::JsonDocument::parse(members.from_first(measured), "costs of rank 0"));
}

/// Returns the scenario with boundary tensors copied, if its ranks are in different processes or on
/// different devices.
plan::Scenario as_executed(plan::Scenario scenario, const Workload& workload,
                           const Membership& members) {
  if (members.in_job() || on_different_devices(workload.devices()))
    scenario.pipeline.local_transfer = plan::TensorTransfer::Copy;
  return scenario;
}

}  // namespace

plan::RankTransport carrier_of(bool in_job, const DeviceChoice& devices) {
  if (!in_job)
    return plan::RankTransport::Threads;
  return devices.gpu ? plan::RankTransport::Nccl : plan::RankTransport::Gloo;
}

void require_trainable(const plan::Scenario& scenario, plan::RankTransport carrier, bool verified) {
  plan::require_trainable(scenario, carrier);
  for (const std::string& fault :
       scenario.model.descriptor().faults_of_cut(scenario.model, tensor_groups_of(scenario)))
    throw plan::InputError(fmt::format("pipeline.tensor={} can be predicted but not trained: {}",
                                       scenario.pipeline.tensor, fault));
  const plan::Program program = sim::sound_program(scenario);
  exec::require_trainable(program, scenario.pipeline.expert);
  if (verified && !can_verify(program))
    throw plan::InputError(
        fmt::format("--verify: {} steps without a flush, so it does not equal training "
                    "without a pipeline",
                    scenario.pipeline.schedule.label()));
}

Prepared prepare(const plan::Scenario& scenario, Membership& members,
                 const PrepareOptions& options) {
  require_trainable(scenario, carrier_of(members.in_job(), options.devices), /*verified=*/false);
  open_devices(options.devices, scenario.training.cpu_branch);
  const int ranks = plan::ranks_of_job(scenario.pipeline);
  Workload workload(scenario, devices_for(options.devices, ranks, members.job()));
  std::optional<SharedGpu> shared;
  if (!members.in_job())
    shared = shared_gpu(workload.devices());
  if (shared)
    say(options, in_words(*shared));
  plan::Scenario executed = as_executed(scenario, workload, members);
  plan::LayerCosts costs =
      options.costs ? *options.costs : measured_costs(executed, workload, members, options);
  Plan plan = make_plan(executed, costs);
  return {.scenario = scenario,
          .executed = std::move(executed),
          .devices = options.devices,
          .workload = std::move(workload),
          .costs = std::move(costs),
          .were_measured = !options.costs,
          .shared_gpu = shared,
          .plan = std::move(plan)};
}

std::string given(bool is_given) { return is_given ? "given" : "not given"; }

void require_agreement(Membership& members, const Prepared& prepared, const exec::Facts& more) {
  if (!members.in_job())
    return;
  plan::Scenario elsewhere = prepared.executed;
  // Paths may differ from machine to machine.
  elsewhere.data.path.clear();
  elsewhere.data.evaluation.clear();
  if (auto* const folder = elsewhere.model.find<plan::HuggingFaceShape>())
    folder->path.clear();
  elsewhere.pipeline.schedule.name = elsewhere.pipeline.schedule.label();
  exec::Facts facts{
      {"version", PIPEWRIGHT_VERSION},
      {"scenario", checksum(to_json(elsewhere).dump())},
      {"model", checksum(to_json(model_of(prepared.scenario)).dump())},
      {"partition", plan::to_string(prepared.plan.partition.boundaries)},
      {"Program", checksum(to_json(prepared.plan.program()).dump())},
      {"--device", prepared.devices.gpu ? "cuda" : "cpu"},
      {"computed with (training.cpu_branch)", exec::device_in_words(prepared.workload.device())}};
  facts.insert(facts.end(), more.begin(), more.end());
  exec::require_agreement(*members.job(), facts);
}

}  // namespace pipewright::loop
