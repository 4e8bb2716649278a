#pragma once

// Times an iteration of a transformer's training: its stages' analytic costs on the Program of its
// schedule, in the native engine. Cuts with equal schedule, ranks, microbatches and chunks share a
// structure. If a schedule orders actions by times, each run has its own order, from its first
// times.

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "pipewright/models/transformer/transformer_times.hpp"
#include "pipewright/sim/engine/simulator.hpp"

namespace pipewright::search {

/// Times iterations. Use one per thread.
class RunSimulator {
 public:
  explicit RunSimulator(const plan::Cluster& cluster);
  ~RunSimulator();
  RunSimulator(const RunSimulator&) = delete;
  RunSimulator& operator=(const RunSimulator&) = delete;

  /// Returns the iteration in seconds. `times` must be those of this cut.
  double iteration(const plan::TransformerTraining& training, const plan::Cut& cut,
                   const models::TransformerTimes& times);
  /// Returns the longest time that a rank takes from its first pass to the end of its optimizer
  /// step: the iteration if each rank steps independently.
  double span(const plan::TransformerTraining& training, const plan::Cut& cut,
              const models::TransformerTimes& times);

 private:
  struct Pipeline;
  /// A pipeline of a schedule that orders its actions by times, with the run that was timed first.
  struct OrderedPipeline {
    plan::TransformerTraining training;
    plan::Cut cut;
    std::unique_ptr<Pipeline> pipeline;
  };
  Pipeline& pipeline_of(const plan::TransformerTraining& training, const plan::Cut& cut);

  plan::Cluster cluster_;
  sim::StepCosts costs_;
  /// By schedule, ranks, microbatches, chunks, group and whether transfers occupy both ends.
  std::map<std::tuple<std::string, int, int, int, int, bool>, std::unique_ptr<Pipeline>> pipelines_;
  std::vector<OrderedPipeline> ordered_;
};

}  // namespace pipewright::search
