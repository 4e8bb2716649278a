#pragma once

// Measures what each layer costs on this machine's CPU or a GPU, by running the whole model
// microbatch by microbatch, layer by layer, as training does: so caches are as warm as they will
// be, not warmer.

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/plan/layer_costs.hpp"
#include "pipewright/plan/scenario.hpp"

namespace pipewright::profiler {

/// One layer, as the profiler sees it.
struct Probe {
  std::string name;
  std::function<at::Tensor(const at::Tensor& input)> forward;
  std::vector<at::Tensor> parameters;
  std::function<void()> optimizer_step;  // empty: there is none
};

/// How the bytes that tensors hold are read; the profiler has no allocator of its own.
struct MemoryGauge {
  std::function<plan::Bytes()> held;
  std::function<plan::Bytes()> peak;  // since `reset_peak`
  std::function<void()> reset_peak;
};

/// Computes the gradient of `input` alone, from that of `output`, and returns what the weights'
/// gradients still need: its life is the life of the memory that a stage holds between I and W.
using InputGradient = std::function<std::shared_ptr<void>(
    const at::Tensor& output, const at::Tensor& gradient, const at::Tensor& input)>;

struct Subject {
  std::vector<Probe> layers;
  Probe loss;                        // from the last layer's output to a scalar
  std::function<at::Tensor()> load;  // makes one microbatch of input
  plan::Bytes target;                // of one microbatch
  int microbatch_size = 1;
  MemoryGauge memory;
  InputGradient input_gradient;  // empty: then all is held until W
  std::string device;            // its name; empty: the CPU
  std::function<void()> finish;  // waits until the device has done all it was given; empty: CPU
};

struct Progress {
  int passes = 0;     // so far
  double spread = 0;  // of the whole model's forward and backward
};

/// Runs passes until the time of a whole pass has a spread (interquartile range over median) of at
/// most `settings.spread`, within its bounds on the number of repeats. Each figure is the median
/// over the passes. The weight gradient's time is the full backward less the input gradient's, so
/// that the two add up to what a full backward takes. Runs on the calling thread alone.
/// `stop` ends it early by returning what was measured; `report` is called after each pass.
plan::LayerCosts profile(const Subject& subject, const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report = {},
                         const std::atomic<bool>* stop = nullptr);

/// Such as "Intel(R) Xeon(R) Processor", from /proc/cpuinfo; "CPU" where that is silent.
std::string cpu_name();

}  // namespace pipewright::profiler
