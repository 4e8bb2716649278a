#pragma once

// The time of an iteration of a transformer's training: its stages' analytic costs on the Program
// of its schedule, in the native engine. Cuts of one schedule, ranks, microbatches and chunks share
// a structure; where times order the actions, as do those that came first.

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "pipewright/plan/transformer/transformer_times.hpp"
#include "pipewright/sim/engine/simulator.hpp"

namespace pipewright::sim {

/// One per thread.
class RunSimulator {
 public:
  explicit RunSimulator(const plan::Cluster& cluster);
  ~RunSimulator();
  RunSimulator(const RunSimulator&) = delete;
  RunSimulator& operator=(const RunSimulator&) = delete;

  /// `times` are those of this cut. Seconds.
  double iteration(const plan::TransformerTraining& training, const plan::Cut& cut,
                   const plan::TransformerTimes& times);
  /// The longest that a rank takes from its first pass to the end of its optimizer's step: the
  /// iteration where each rank steps by itself.
  double span(const plan::TransformerTraining& training, const plan::Cut& cut,
              const plan::TransformerTimes& times);

 private:
  struct Pipeline;
  Pipeline& pipeline_of(const plan::TransformerTraining& training, const plan::Cut& cut);

  plan::Cluster cluster_;
  StepCosts costs_;
  /// By schedule and sizes; where times order its actions, also by the layers.
  std::map<std::tuple<std::string, int, int, int, int, bool, std::string>,
           std::unique_ptr<Pipeline>>
      pipelines_;
};

}  // namespace pipewright::sim
