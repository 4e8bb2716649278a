#pragma once

// Breaks down the time of a training's layers by kernel.

#include <atomic>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/activity/activity_source.hpp"
#include "pipewright/profiler/activity/work_report.hpp"
#include "pipewright/profiler/layers/layer_bench.hpp"
#include "pipewright/profiler/layers/layer_samples.hpp"
#include "pipewright/profiler/sections/sections.hpp"

namespace pipewright::profiler {

struct Inspection {
  WorkReport report;
  RecordedPass last;                  // the last recorded pass of all sections, joined
  std::vector<LayerSamples> samples;  // what each part adds to a step; by layer, the loss last
};

/// Runs the model in the sections that `profile` measures, but without waiting for the device in
/// between: `passes` times with recording and as often without, alternating; large sections fewer
/// times. Must be called on the bench's thread while nothing else runs. `stop` ends it early. With
/// `launches_whole`, samples are for a training that launches a part of a microbatch at once
/// (training.cuda_graphs), so they leave out the launch times of layers.
Inspection inspect(const LayerBench& bench, ActivitySource& source, int passes,
                   const std::atomic<bool>* stop = nullptr, bool launches_whole = false);

/// Replaces times by those of the device, that is, what a layer adds to a step whose host does not
/// wait. Use it for costs measured by the host's clock, which waits for the device after each
/// layer. A layer that was not inspected gets the times of the first layer like it.
plan::LayerCosts with_device_times(plan::LayerCosts costs, const Inspection& inspection,
                                   const std::vector<AlikeLayers>& alike = {});

/// Appends seconds by layer and part, with one entry for each run in the pass. An optimizer step is
/// never launched as a graph.
void append_samples(const RecordedPass& pass, std::vector<LayerSamples>& samples,
                    bool launches_whole = false);

}  // namespace pipewright::profiler
