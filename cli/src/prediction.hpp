#pragma once

// One iteration as an engine predicts it, with everything that `simulate` shows of it.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/plan/scenario.hpp"
#include "pipewright/plan/timeline.hpp"
#include "pipewright/sim/idle.hpp"
#include "pipewright/sim/memory.hpp"
#include "pipewright/sim/times.hpp"
#include "planning.hpp"

namespace pipewright::cli {

/// Which engine times the Program.
struct Engine {
  std::string name = "native";     // or "simgrid"
  std::filesystem::path platform;  // a SimGrid platform file; empty: built from the cluster
};

struct Prediction {
  sim::Times times;
  sim::IdleTime idle;
  std::vector<sim::MemoryPeak> peaks;              // by rank
  std::vector<std::vector<sim::Holder>> at_peaks;  // by rank, the largest first
  std::vector<int> critical;                       // events
  std::string bound;  // why the answer is a lower bound; empty: it is exact by the rules
  plan::Timeline timeline;
};

/// Times the plan's Program. Throws InputError for costs or a platform that cannot be used.
Prediction predict(const plan::Scenario& scenario, const Plan& plan, const Engine& engine = {});

/// A plan together with its prediction. Throws as `lay_out` does, and plan::Infeasible for too
/// little memory.
Plan make_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs);

/// What an iteration works off.
struct Throughput {
  double units_per_s = 0;  // over all replicas
  std::string unit;        // "tokens", "images"
  double mfu = 0;          // model FLOPs over the devices' peak; 0: the peak is not known
};
Throughput throughput_of(const plan::Scenario& scenario, double iteration_s);

/// Tables for people, and the same as JSON.
std::string prediction_table(const Prediction& prediction, const Plan& plan,
                             const Throughput& throughput);
std::string sensitivity_table(const Plan& plan, const plan::LayerCosts& costs);
plan::Json prediction_json(const Prediction& prediction, const Plan& plan,
                           const Throughput& throughput);
plan::Json sensitivity_json(const Plan& plan, const plan::LayerCosts& costs);

}  // namespace pipewright::cli
