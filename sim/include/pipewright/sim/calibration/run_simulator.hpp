#pragma once

// The time of an iteration of a training run: its stages' analytic costs on the Program of its
// schedule, in the native engine. Runs of one schedule, ranks, microbatches and chunks share a
// structure.

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "pipewright/plan/runs/transformer_times.hpp"
#include "pipewright/sim/engine/simulator.hpp"

namespace pipewright::sim {

/// One per thread.
class RunSimulator {
 public:
  explicit RunSimulator(const plan::Cluster& cluster);
  ~RunSimulator();
  RunSimulator(const RunSimulator&) = delete;
  RunSimulator& operator=(const RunSimulator&) = delete;

  double iteration(const plan::TrainingRun& run, const plan::TransformerWork& work,
                   const plan::MachineConstants& constants, const plan::LayerFactors& factors = {});

 private:
  struct Pipeline;
  Pipeline& pipeline_of(const plan::TrainingRun& run);

  plan::Cluster cluster_;
  std::map<std::tuple<std::string, int, int, int>, std::unique_ptr<Pipeline>> pipelines_;
};

}  // namespace pipewright::sim
