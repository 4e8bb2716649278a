#pragma once

// A look into the layers of a training: what their time is made of.

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
  RecordedPass last;                  // of the passes: of all sections, one behind the other
  std::vector<LayerSamples> samples;  // what each part adds to a step; by layer, the loss last
};

/// Plays the model through in the sections that `profile` measures, but without waiting for the
/// device in between, `passes` times with records and as often without, in turn; large sections
/// fewer times. On the thread of the bench, alone.
/// `stop` ends it early. `launches_whole`: the samples are for a training that launches a part of a
/// microbatch at once (training.cuda_graphs), so they leave out what its layers were launching.
Inspection inspect(const LayerBench& bench, ActivitySource& source, int passes,
                   const std::atomic<bool>* stop = nullptr, bool launches_whole = false);

/// Times as the device took them: what a layer adds to a step whose host does not wait. For costs
/// that were measured by the host's clock, which waits for the device after each layer. A layer
/// that was not looked at has those of the first one like it.
plan::LayerCosts with_device_times(plan::LayerCosts costs, const Inspection& inspection,
                                   const std::vector<AlikeLayers>& alike = {});

/// By layer and part: seconds, one entry for each time that it was run in one of the passes. A step
/// of the optimizer is never launched whole.
void append_samples(const RecordedPass& pass, std::vector<LayerSamples>& samples,
                    bool launches_whole = false);

}  // namespace pipewright::profiler
