#include "calibration_runs.hpp"

#include <algorithm>
#include <cmath>

#include "pipewright/models/transformer/cut_schedule.hpp"

namespace pipewright::search {

using models::MeasuredRun;

plan::Cut assumed_cut(const plan::Cluster& cluster, const MeasuredRun& run,
                      const Assumption& assumed) {
  return run.cut_if(on_several_nodes(cluster, run.cut.devices()) ? assumed.between
                                                                 : assumed.within);
}

plan::LayerClass layer_class_of(const MeasuredRun& run) {
  return models::layer_class_of(run.training, run.cut);
}

Runs::Runs(const plan::Cluster& cluster, const std::vector<MeasuredRun>& runs,
           const Assumption& assumed)
    : runs_(runs) {
  for (const MeasuredRun& run : runs) {
    cuts_.push_back(assumed_cut(cluster, run, assumed));
    work_.push_back(models::transformer_work(cluster, run.training, cuts_.back()));
  }
}

double Runs::time(RunSimulator& simulator, std::size_t row, const plan::MachineConstants& constants,
                  const models::LayerFactors& factors) const {
  const MeasuredRun& run = runs_[row];
  const plan::Cut& cut = cuts_[row];
  const auto times = models::transformer_times(work_[row], constants, factors);
  if (run.names_schedule && models::cut_schedule(schedule_name(cut)).steps_by_rank)
    return simulator.span(run.training, cut, times);
  return simulator.iteration(run.training, cut, times);
}

double Runs::residual(RunSimulator& simulator, std::size_t row,
                      const plan::MachineConstants& constants,
                      const models::LayerFactors& factors) const {
  return std::log(time(simulator, row, constants, factors) / runs_[row].iteration->value);
}

Classes::Classes(const Runs& runs) {
  for (std::size_t row = 0; row < runs.size(); ++row) {
    const plan::LayerClass own = layer_class_of(runs[row]);
    const auto found = std::find_if(
        classes.begin(), classes.end(),
        [&](const plan::LayerClass& known) { return models::same_layers(known, own); });
    of_row.push_back(static_cast<int>(found - classes.begin()));
    if (found == classes.end())
      classes.push_back(own);
    else
      ++found->runs;
  }
}

}  // namespace pipewright::search
