#include "pipewright/profiler/profile.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "layer_memory.hpp"
#include "pipewright/plan/statistics.hpp"

namespace pipewright::profiler {
namespace {

using plan::median;
using plan::Seconds;
using plan::spread;
using Clock = std::chrono::steady_clock;

/// Repeated measurements of one layer, in seconds.
struct Samples {
  std::vector<double> forward, backward, input_gradient, optimizer_step;

  std::vector<double> whole() const {
    std::vector<double> sums = forward;
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += backward[i];
    return sums;
  }
};

/// One layer's part of a pass: its input, cut off the layers before, and its output.
struct Segment {
  at::Tensor input;
  at::Tensor output;
};

class Profiler {
 public:
  explicit Profiler(const Subject& subject)
      : subject_(subject), probes_(subject.layers), samples_(subject.layers.size() + 1) {
    probes_.push_back(subject.loss);
  }

  void pass(bool counts) {
    std::vector<Segment> segments;
    double whole = 0;
    forward(segments, counts, whole);
    backward(segments, counts, whole);
    for (std::size_t l = 0; l < probes_.size(); ++l) {
      if (!probes_[l].optimizer_step)
        continue;
      const double step = timed(probes_[l].optimizer_step);
      if (counts)
        samples_[l].optimizer_step.push_back(step);
    }
    if (counts)
      whole_.push_back(whole);
  }

  /// The same forward, then the gradient of each layer's input alone.
  void input_gradient_pass(bool counts) {
    std::vector<Segment> segments;
    double ignored = 0;
    forward(segments, /*counts=*/false, ignored);
    for (std::size_t l = probes_.size(); l-- > 0;) {
      Segment& segment = segments[l];
      double seconds = 0;
      if (segment.input.requires_grad()) {
        const at::Tensor gradient = at::ones_like(segment.output);
        seconds = timed([&] {
          torch::autograd::grad({segment.output}, {segment.input}, {gradient},
                                /*retain_graph=*/false);
        });
      }
      if (counts)
        samples_[l].input_gradient.push_back(seconds);
      segment = {};
    }
  }

  double whole_spread() const { return spread(whole_); }
  int passes() const { return static_cast<int>(whole_.size()); }

  plan::LayerCosts costs() {
    plan::LayerCosts costs;
    costs.device = subject_.device.empty() ? cpu_name() : subject_.device;
    costs.dtype = "float32";
    costs.software = std::string("LibTorch ") + TORCH_VERSION;
    costs.microbatch_size = subject_.microbatch_size;
    costs.load = {median(load_)};
    costs.target = subject_.target;
    at::Tensor value = subject_.load();
    costs.input = {static_cast<std::int64_t>(value.nbytes())};
    for (std::size_t l = 0; l < probes_.size(); ++l) {
      plan::LayerCost cost = times_of(l);
      measure_memory(probes_[l], subject_, value, l > 0, cost);
      const at::NoGradGuard no_grad;
      value = probes_[l].forward(value);
      (l < subject_.layers.size() ? costs.layers.emplace_back() : costs.loss) = cost;
    }
    return costs;
  }

 private:
  /// Seconds that `work` takes, on a GPU until it has been computed.
  template <class Work>
  double timed(const Work& work) const {
    const auto begin = Clock::now();
    work();
    if (subject_.finish)
      subject_.finish();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void forward(std::vector<Segment>& segments, bool counts, double& whole) {
    at::Tensor value;
    const double load = timed([&] { value = subject_.load(); });
    if (counts)
      load_.push_back(load);
    for (std::size_t l = 0; l < probes_.size(); ++l) {
      Segment& segment = segments.emplace_back();
      segment.input = value.detach();
      if (l > 0)
        segment.input.requires_grad_();
      const double seconds = timed([&] { segment.output = probes_[l].forward(segment.input); });
      whole += seconds;
      if (counts)
        samples_[l].forward.push_back(seconds);
      value = segment.output;
    }
  }

  void backward(std::vector<Segment>& segments, bool counts, double& whole) {
    at::Tensor gradient;  // of the last output, a scalar: LibTorch takes 1
    for (std::size_t l = probes_.size(); l-- > 0;) {
      Segment& segment = segments[l];
      double seconds = 0;
      if (segment.output.requires_grad())
        seconds = timed([&] {
          torch::autograd::backward({segment.output}, {gradient});
          segment.output = at::Tensor();
        });
      whole += seconds;
      if (counts)
        samples_[l].backward.push_back(seconds);
      gradient = segment.input.grad();
      segment = {};
    }
  }

  plan::LayerCost times_of(std::size_t l) const {
    const Samples& samples = samples_[l];
    const double backward = median(samples.backward);
    const double input = std::min(median(samples.input_gradient), backward);
    plan::LayerCost cost;
    cost.name = probes_[l].name;
    cost.forward = {median(samples.forward)};
    cost.input_gradient = {input};
    // Without parameters all of the backward leads to the input, however the two were timed.
    cost.weight_gradient = {probes_[l].parameters.empty() ? 0 : backward - input};
    if (probes_[l].parameters.empty())
      cost.input_gradient = {backward};
    cost.optimizer_step = {median(samples.optimizer_step)};
    cost.spread = spread(samples.whole());
    return cost;
  }

  const Subject& subject_;
  std::vector<Probe> probes_;  // the layers, then the loss
  std::vector<Samples> samples_;
  std::vector<double> load_;
  std::vector<double> whole_;  // forward and backward of all layers, a pass each
};

}  // namespace

plan::LayerCosts profile(const Subject& subject, const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report,
                         const std::atomic<bool>* stop) {
  Profiler profiler(subject);
  const auto stopped = [&] { return stop != nullptr && stop->load(); };
  for (int i = 0; i < settings.warm_up && !stopped(); ++i) {
    profiler.pass(/*counts=*/false);
    profiler.input_gradient_pass(/*counts=*/false);
  }
  while (profiler.passes() < settings.most_repeats && !stopped()) {
    profiler.pass(/*counts=*/true);
    profiler.input_gradient_pass(/*counts=*/true);
    const Progress progress{profiler.passes(), profiler.whole_spread()};
    if (report)
      report(progress);
    if (progress.passes >= settings.least_repeats && progress.spread <= settings.spread)
      break;
  }
  return profiler.costs();
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace pipewright::profiler
