#include "calibration_runs.hpp"

#include <algorithm>
#include <cmath>

namespace pipewright::sim {

using plan::TrainingRun;

plan::RunRecompute assumed_of(const plan::Cluster& cluster, const TrainingRun& run,
                              const Assumption& assumed) {
  return on_several_nodes(cluster, run) ? assumed.between : assumed.within;
}

Runs::Runs(const plan::Cluster& cluster, const std::vector<TrainingRun>& runs,
           const Assumption& assumed)
    : runs_(runs) {
  for (const TrainingRun& run : runs)
    work_.push_back(plan::transformer_work(cluster, run, assumed_of(cluster, run, assumed)));
}

double Runs::time(RunSimulator& simulator, std::size_t row, const plan::MachineConstants& constants,
                  const plan::LayerFactors& factors) const {
  return simulator.iteration(runs_[row], work_[row], constants, factors);
}

double Runs::residual(RunSimulator& simulator, std::size_t row,
                      const plan::MachineConstants& constants,
                      const plan::LayerFactors& factors) const {
  return std::log(time(simulator, row, constants, factors) / runs_[row].iteration->value);
}

Classes::Classes(const Runs& runs) {
  for (std::size_t row = 0; row < runs.size(); ++row) {
    const plan::LayerClass own = plan::layer_class_of(runs[row]);
    const auto found =
        std::find_if(classes.begin(), classes.end(),
                     [&](const plan::LayerClass& known) { return plan::same_layers(known, own); });
    of_row.push_back(static_cast<int>(found - classes.begin()));
    if (found == classes.end())
      classes.push_back(own);
    else
      ++found->runs;
  }
}

}  // namespace pipewright::sim
