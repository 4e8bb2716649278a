#include "pipewright/profiler/profile/inspection.hpp"

#include <utility>

#include "layers/walk.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/profiler/activity/joined_passes.hpp"
#include "pipewright/profiler/activity/work_log.hpp"
#include "sections/section_pass.hpp"

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

namespace {

constexpr double longest_look = 3;  // seconds for a section, to within two of its passes

/// The recordings of the sections.
struct Looks {
  std::vector<RecordedPass> recorded;  // passes of all sections
  std::vector<RecordedPass> last;      // the last pass of each section
  // Seconds of a pass with and without recording, summed over sections.
  double with_records = 0, without = 0;
};

/// Runs a section alternately with and without recording.
void look_at(Rehearsal& rehearsal, ActivitySource& source, WorkLog& log, int passes,
             const std::atomic<bool>* stop, Looks& looks) {
  std::vector<RecordedPass> recorded;
  std::vector<double> with_records, without;
  double all = rehearsal.play_through(nullptr).value;
  for (int pass = 0; pass <= passes && (pass < 2 || all < longest_look); ++pass) {
    if (stop != nullptr && stop->load())
      break;
    without.push_back(rehearsal.play_through(nullptr).value);
    log.start();
    with_records.push_back(rehearsal.play_through(&log).value);
    log.stop();
    all += without.back() + with_records.back();
    std::vector<WorkRange> ranges = log.take();
    recorded.push_back({source.collect(), std::move(ranges)});
    if (pass > 0)
      continue;
    recorded.clear();  // drop the first pass, in which the device and recording are slow
    with_records.clear();
    without.clear();
  }
  looks.with_records += plan::median(with_records);
  looks.without += plan::median(without);
  if (!recorded.empty())
    looks.last.push_back(recorded.back());
  for (RecordedPass& pass : recorded)
    looks.recorded.push_back(std::move(pass));
}

/// Scales kernel sums to the model, because a pass has the kernels of one section only.
void count_by_model(WorkReport& report, std::size_t sections) {
  for (KernelSum& kernel : report.kernels) {
    kernel.count *= static_cast<double>(sections);
    kernel.time = kernel.time * static_cast<double>(sections);
    if (kernel.moved)
      kernel.moved = plan::Bytes{kernel.moved->value * static_cast<std::int64_t>(sections)};
  }
}

}  // namespace

Inspection inspect(const LayerBench& bench, ActivitySource& source, int passes,
                   const std::atomic<bool>* stop, bool launches_whole) {
  const std::vector<LayerOutline> outlines = outlines_of(bench);
  const std::vector<bool> wanted = wanted_places(outlines, {});
  WorkLog log(source);
  Walk walk(bench, outlines);
  Looks looks;
  std::size_t sections = 0;
  for (const Section& section : sections_of(outlines, /*copies=*/1, section_budget)) {
    if (!is_wanted(section, wanted) || (stop != nullptr && stop->load()))
      continue;
    walk.go_to(section.first);
    Rehearsal rehearsal = section_pass(bench, section, walk.inputs());
    look_at(rehearsal, source, log, passes, stop, looks);
    ++sections;
  }
  Inspection found;
  found.report = work_report(looks.recorded);
  found.report.source = source.name();
  found.report.on_device = source.on_device();
  if (looks.recorded.empty())
    return found;
  count_by_model(found.report, sections);
  found.report.overhead = looks.with_records / looks.without - 1;
  for (const RecordedPass& pass : looks.recorded)
    append_samples(pass, found.samples, launches_whole);
  found.last = joined(std::move(looks.last));
  return found;
}

namespace {

void set_device_times(plan::LayerCost& cost, const LayerSamples& samples) {
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

plan::LayerCosts with_device_times(plan::LayerCosts costs, const Inspection& inspection,
                                   const std::vector<EquivalentLayers>& alike) {
  std::vector<LayerSamples> samples = inspection.samples;
  samples.resize(costs.layers.size() + 1);
  for (const EquivalentLayers& kind : alike)
    for (const int layer : kind.layers)
      if (LayerSamples& own = samples[static_cast<std::size_t>(layer)]; own.forward.empty())
        own = samples[static_cast<std::size_t>(kind.layers.front())];
  for (std::size_t l = 0; l <= costs.layers.size(); ++l)
    set_device_times(l < costs.layers.size() ? costs.layers[l] : costs.loss, samples[l]);
  return costs;
}

}  // namespace pipewright::profiler
