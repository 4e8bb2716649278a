#include "pipewright/search/calibration/run_memory.hpp"

#include "calibration_runs.hpp"
#include "pipewright/models/measured/megatron_words.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::search {

models::DeviceMemory memory_of_run(const models::MeasuredRun& run, const plan::Cut& cut,
                                   const Forecast& forecast) {
  const plan::Bytes peak = plan::whole_bytes(forecast.ranks[forecast.read].peak_bytes);
  if (models::tells_megatron(run))
    return models::gpu_memory(peak, cut, "transformer_impl: runs of Megatron-LM are not replayed");
  try {
    return models::replayed_memory(run.training, cut, static_cast<int>(forecast.read));
  } catch (const plan::InputError& error) {
    return models::gpu_memory(peak, cut, error.what());
  }
}

std::vector<std::optional<models::DeviceMemory>> memory_of_runs(
    const Calibration& calibration, const std::vector<models::MeasuredRun>& runs,
    const std::vector<Forecast>& forecasts) {
  std::vector<std::optional<models::DeviceMemory>> all(runs.size());
  const Assumption assumed{calibration.within_node, calibration.between_nodes};
  for (std::size_t at = 0; at < runs.size(); ++at)
    if (forecasts[at].memory_refused.empty())
      all[at] = memory_of_run(runs[at], assumed_cut(calibration.cluster, runs[at], assumed),
                              forecasts[at]);
  return all;
}

}  // namespace pipewright::search
