#pragma once

// The time of an iteration of a transformer's training: its stages' analytic costs on the Program
// of its schedule, in the native engine. Cuts of one schedule, ranks, microbatches and chunks share
// a structure. Where times order the actions, each run has an order of its own, by its first times.

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "pipewright/models/transformer/transformer_times.hpp"
#include "pipewright/sim/engine/simulator.hpp"

namespace pipewright::search {

/// One per thread.
class RunSimulator {
 public:
  explicit RunSimulator(const plan::Cluster& cluster);
  ~RunSimulator();
  RunSimulator(const RunSimulator&) = delete;
  RunSimulator& operator=(const RunSimulator&) = delete;

  /// `times` are those of this cut. Seconds.
  double iteration(const plan::TransformerTraining& training, const plan::Cut& cut,
                   const models::TransformerTimes& times);
  /// The longest that a rank takes from its first pass to the end of its optimizer's step: the
  /// iteration where each rank steps by itself.
  double span(const plan::TransformerTraining& training, const plan::Cut& cut,
              const models::TransformerTimes& times);

 private:
  struct Pipeline;
  /// A pipeline of a schedule that orders its actions by times, with the run whose times came
  /// first.
  struct OrderedPipeline {
    plan::TransformerTraining training;
    plan::Cut cut;
    std::unique_ptr<Pipeline> pipeline;
  };
  Pipeline& pipeline_of(const plan::TransformerTraining& training, const plan::Cut& cut);

  plan::Cluster cluster_;
  sim::StepCosts costs_;
  /// By schedule, ranks, microbatches, chunks, group and whether transfers hold both ends.
  std::map<std::tuple<std::string, int, int, int, int, bool>, std::unique_ptr<Pipeline>> pipelines_;
  std::vector<OrderedPipeline> ordered_;
};

}  // namespace pipewright::search
