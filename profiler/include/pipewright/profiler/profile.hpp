#pragma once

// Measures what each layer costs on this machine's CPU or a GPU, by running the whole model
// microbatch by microbatch, layer by layer, as training does: so caches are as warm as they will
// be, not warmer. On a CPU it does so alone, and while as many cores do the same as will train.

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/profiler/cores.hpp"

namespace pipewright::profiler {

/// One layer, as the profiler sees it.
struct Probe {
  std::string name;
  std::function<at::Tensor(const at::Tensor& input)> forward;
  std::vector<at::Tensor> parameters;
  std::function<void()> optimizer_step{};  // empty: there is none
  /// `forward` under selective recomputation; empty: there is no difference.
  std::function<at::Tensor(const at::Tensor& input)> selective{};
};

/// How the bytes that tensors hold are read; the profiler has no allocator of its own.
struct MemoryGauge {
  std::function<plan::Bytes()> held;
  std::function<plan::Bytes()> peak;  // since `reset_peak`
  std::function<void()> reset_peak;
};

/// A backward whose first half is done.
struct HalfBackward {
  at::Tensor input_gradient;
  /// The second half, for the weights. It holds what that needs, which is what a stage holds
  /// between I and W.
  std::function<void()> weights;
};
using InputGradient = std::function<HalfBackward(
    const at::Tensor& output, const at::Tensor& gradient, const at::Tensor& input)>;

struct Subject {
  std::vector<Probe> layers;
  Probe loss;                        // from the last layer's output to a scalar
  std::function<at::Tensor()> load;  // makes one microbatch of input
  plan::Bytes target;                // of one microbatch
  int microbatch_size = 1;
  std::string dtype = "float32";  // of parameters and activations
  MemoryGauge memory;
  InputGradient input_gradient;  // empty: then all is held until W
  std::string device;            // its name; empty: the CPU
  std::function<void()> finish;  // waits until the device has done all it was given; empty: CPU
};

struct Progress {
  int passes = 0;          // so far
  double spread = 0;       // of the whole model's forward and backward
  plan::Seconds passed{};  // since the first one
};

/// Runs passes until the time of a whole pass has a spread (interquartile range over median) of at
/// most `settings.spread`, within its bounds on the number of repeats, and for at least `over`.
/// Each figure is a mean over the passes (plan::typical_mean). Runs on the calling thread alone.
/// `stop` ends it early by returning what was measured; `report` is called after each pass.
plan::LayerCosts profile(const Subject& subject, const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report = {},
                         const std::atomic<bool>* stop = nullptr, plan::Seconds over = {});

/// The same on several cores: a pass on one of them alone, then one on all at once, in turn.
/// `subjects`: one for each core, alike, with nothing in common.
plan::LayerCosts profile(const std::vector<const Subject*>& subjects, Cores& cores,
                         const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report = {},
                         const std::atomic<bool>* stop = nullptr, plan::Seconds over = {});

/// Such as "Intel(R) Xeon(R) Processor", from /proc/cpuinfo; "CPU" where that is silent.
std::string cpu_name();

}  // namespace pipewright::profiler
