#pragma once

// Records the kernels of a training's layers, to break down each layer's time by kernel.

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
  std::vector<LayerSamples> samples;  // seconds that each layer adds to a step; the loss is last
};

/// Runs the sections of the model that `profile` measures, but without waiting for the device after
/// each layer. Each section runs `passes` times with recording and as often without, alternately;
/// sections that take seconds run fewer times. Must be called on the bench's thread while nothing
/// else runs. `stop` ends it early. With `launches_whole`, the samples are for a training that
/// launches each action of a microbatch as one graph (training.cuda_graphs), so they leave out the
/// layers' launch gaps, in which the device waits for the host.
Inspection inspect(const LayerBench& bench, ActivitySource& source, int passes,
                   const std::atomic<bool>* stop = nullptr, bool launches_whole = false);

/// Returns the costs with the inspection's times: what a layer adds to a step whose host runs ahead
/// of the device. Use it for costs measured by the host's clock, which include a wait for the
/// device after each layer. A layer that was not inspected gets the times of the first of its
/// equivalent layers (`alike`).
plan::LayerCosts with_device_times(plan::LayerCosts costs, const Inspection& inspection,
                                   const std::vector<EquivalentLayers>& alike = {});

/// Appends the seconds of each layer's parts, one entry for each run in the pass. With
/// `launches_whole`, launch gaps are left out, except of optimizer steps, which are never launched
/// as graphs.
void append_samples(const RecordedPass& pass, std::vector<LayerSamples>& samples,
                    bool launches_whole = false);

}  // namespace pipewright::profiler
