#pragma once

// What a rank computes, played through on one core in the order of its Program, without a pipeline:
// nothing is sent and nobody waits. So it has the caches and the memory of training, and takes the
// time that the layers take by themselves.

#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "pipewright/exec/stage/split_backward.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/profiler/activity/work_log.hpp"
#include "pipewright/profiler/layer_bench.hpp"

namespace pipewright::profiler {

/// Seconds of a layer, one entry each time.
struct LayerSamples {
  std::vector<double> forward;
  std::vector<double> backward;  // in one go
  std::vector<double> input_gradient;
  std::vector<double> weight_gradient;
  std::vector<double> optimizer_step;

  void append(const LayerSamples& other);
};
inline constexpr std::array sample_kinds{
    &LayerSamples::forward, &LayerSamples::backward, &LayerSamples::input_gradient,
    &LayerSamples::weight_gradient, &LayerSamples::optimizer_step};

/// Of what was sampled, the typical times (plan::typical_mean). Where the backward was sampled only
/// in one go, or only in halves, `planned` says how the one follows from the other.
plan::LayerTimes times_of(const LayerSamples& samples, const plan::LayerTimes& planned = {});

/// A stage as its rank knows it.
struct StagePart {
  int first = 0, last = 0;  // layers
  at::Tensor input;         // undefined: the model's, which is loaded
  at::Tensor gradient;      // of the output; undefined: the stage ends with the loss
};

/// What crosses the borders of stages: `boundaries` as those of a Partition.
std::map<int, StagePart> stage_parts(const LayerBench& bench, const std::vector<int>& boundaries);

/// As in plan::Program.
struct RehearsalOptions {
  int recompute_layers = 0;
  bool selective_recompute = false;
  bool asynchronous = false;  // microbatches under way keep the weights of before a step
};

class Rehearsal {
 public:
  /// `script`: of these, what computes is played. The bench needs the layers of the script's stages
  /// alone; it must outlive this.
  Rehearsal(const LayerBench& bench, std::map<int, StagePart> stages,
            std::vector<plan::Instruction> script, const RehearsalOptions& options = {});

  /// Plays it once. `samples`: by layer, the loss last; null: nothing is noted.
  void play(std::vector<LayerSamples>* samples);
  /// Plays it once as training does, which does not wait for the device: only at the end. `log`, if
  /// any, is told of each layer's part, the loss as the layer behind the last. Returns how long it
  /// took.
  plan::Seconds play_through(WorkLog* log);
  /// How long each instruction of the script took the last time; 0 of what computes nothing.
  const std::vector<double>& seconds() const { return seconds_; }
  /// Of these, by LOAD of the last stage, what producing its targets took.
  const std::vector<double>& target_seconds() const { return target_seconds_; }

 private:
  /// One layer's part of a microbatch: its input, cut off the layers before, and its output, the
  /// root of its graph. What runs again has no graph before; of the layers that do so at a time the
  /// first one has its input.
  struct Segment {
    at::Tensor input;
    at::Tensor output;
    std::optional<exec::SplitBackward> split;  // between I and W, and what it holds
    at::Tensor gradient;                       // of the output, where all of its backward is W
  };
  using Microbatch = std::vector<Segment>;

  template <class Work>
  double timed(const plan::Instruction& i, int layer, const Work& work) const;
  const StagePart& part(const plan::Instruction& i) const { return stages_.at(i.stage); }
  static bool has_loss(const StagePart& part);
  std::size_t layer_end(const StagePart& part) const;
  bool runs_again(const plan::Instruction& i) const;
  std::size_t rerun_begin(const StagePart& part, std::size_t segment) const;
  double run_layers(const plan::Instruction& i, std::size_t from, std::size_t to, bool with_graph);
  double perform(const plan::Instruction& i);
  double load(const plan::Instruction& i);
  double forward(const plan::Instruction& i);
  double recompute(const plan::Instruction& i);
  double rerun_up_to(const plan::Instruction& i, std::size_t segment);
  double backward(const plan::Instruction& i);
  double input_gradient(const plan::Instruction& i);
  double weight_gradient(const plan::Instruction& i);
  double optimizer_step(const plan::Instruction& i);
  void note(std::size_t layer, std::vector<double> LayerSamples::*kind, double seconds);

  const LayerBench& bench_;
  std::map<int, StagePart> stages_;
  std::vector<plan::Instruction> script_;
  RehearsalOptions options_;
  std::set<std::pair<int, int>> run_again_;              // (stage, microbatch)
  std::map<int, at::Tensor> loaded_;                     // by microbatch
  std::map<std::pair<int, int>, Microbatch> under_way_;  // by stage and microbatch
  std::vector<LayerSamples>* samples_ = nullptr;
  WorkLog* log_ = nullptr;
  bool waits_for_device_ = true;  // after each layer
  std::vector<double> seconds_, target_seconds_;
};

}  // namespace pipewright::profiler
