#include "pipewright/profiler/inspection.hpp"

#include <utility>

#include "pipewright/plan/statistics.hpp"
#include "pipewright/profiler/activity/work_log.hpp"
#include "whole_model.hpp"

namespace pipewright::profiler {
void append_samples(const RecordedPass& pass, std::vector<LayerSamples>& samples,
                    bool launches_whole) {
  const auto times = work_times(pass.activity, attribute(pass.activity, pass.ranges), pass.ranges);
  for (std::size_t r = 0; r < pass.ranges.size(); ++r) {
    const WorkRange& range = pass.ranges[r];
    const auto kind = samples_of(range.instruction.kind);
    if (range.layer < 0 || kind == nullptr)
      continue;
    samples.resize(std::max(samples.size(), static_cast<std::size_t>(range.layer) + 1));
    plan::Seconds time = times[r].elapsed();
    if (launches_whole && range.instruction.kind != plan::InstructionKind::OptimizerStep)
      time = time - times[r].launch;
    (samples[static_cast<std::size_t>(range.layer)].*kind).push_back(time.value);
  }
}

Inspection inspect(const LayerBench& bench, ActivitySource& source, int passes,
                   const std::atomic<bool>* stop, bool launches_whole) {
  Rehearsal rehearsal = whole_model(bench);
  WorkLog log(source);
  std::vector<RecordedPass> recorded;
  std::vector<double> with_records, without;
  rehearsal.play_through(nullptr);
  for (int pass = 0; pass <= passes; ++pass) {
    if (stop != nullptr && stop->load())
      break;
    without.push_back(rehearsal.play_through(nullptr).value);
    log.start();
    with_records.push_back(rehearsal.play_through(&log).value);
    log.stop();
    std::vector<WorkRange> ranges = log.take();
    recorded.push_back({source.collect(), std::move(ranges)});
    if (pass > 0)
      continue;
    recorded.clear();  // a device and its records are slow at first
    with_records.clear();
    without.clear();
  }
  Inspection found;
  found.report = work_report(recorded);
  found.report.source = source.name();
  found.report.on_device = source.on_device();
  if (recorded.empty())
    return found;
  found.report.overhead = plan::median(with_records) / plan::median(without) - 1;
  for (const RecordedPass& pass : recorded)
    append_samples(pass, found.samples, launches_whole);
  found.last = std::move(recorded.back());
  return found;
}

namespace {

void set_times(plan::LayerCost& cost, const LayerSamples& samples) {
  if (samples.forward.empty())
    return;
  const plan::LayerTimes times = typical_times(samples, cost.parameters > plan::Bytes{});
  cost.forward = times.forward;
  cost.input_gradient = times.input_gradient;
  cost.weight_gradient = times.weight_gradient;
  cost.splitting = times.splitting;
  cost.optimizer_step = times.optimizer_step;
}

}  // namespace

plan::LayerCosts with_device_times(plan::LayerCosts costs, const Inspection& inspection) {
  for (std::size_t l = 0; l < inspection.samples.size() && l <= costs.layers.size(); ++l)
    set_times(l < costs.layers.size() ? costs.layers[l] : costs.loss, inspection.samples[l]);
  return costs;
}

}  // namespace pipewright::profiler
